"""Labels as they arrive: recorded once, joined to the draw that asked for them, counted for a round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from sqlalchemy import CursorResult, bindparam, func, insert, select, update
from sqlalchemy.orm import Session

from store import rounds
from store.pool import chunks
from store.tables import Draw, Label, Project, Round, Task, now


@dataclass(frozen=True)
class NewLabel:
    """What one annotation says. `class_name` is None for a skip, and where `problem` tells why there is none."""

    annotation_id: int
    class_name: str | None
    skipped: bool
    ground_truth: bool
    annotator: int | None
    created_at: datetime
    updated_at: datetime
    problem: str | None = None
    imported: bool = False
    """Whether it came with its task, or was there before the project was connected."""


def record(
    session: Session, project: Project, arrived: Sequence[tuple[int, NewLabel]], *, read_there: bool = False
) -> int:
    """Stores annotations by the ids of their tasks, or what changed of them; returns how many were new or changed. The
    same one twice, or an older state of it, changes nothing. One that was taken back comes back only if it was changed
    since, or was just `read_there`, in Label Studio itself: a message may be a late copy.

    Call with the project locked: which round a label counts for depends on whether that round is still open.
    """
    if not arrived:
        return 0
    held = _held(session, project, [new.annotation_id for _task_id, new in arrived])
    unknown = [(task_id, new) for task_id, new in arrived if new.annotation_id not in held]
    draws = _asking_draws(session, unknown, late=read_there)
    number = rounds.collecting(session, project)
    added: list[dict[str, Any]] = []
    told: dict[int, dict[str, Any]] = {}
    changed: set[int] = set()
    for task_id, new in arrived:
        label = held.get(new.annotation_id)
        said = _said(new)
        if label is None:
            draw_id = draws.get(new.annotation_id)
            label = held[new.annotation_id] = {
                "project_id": project.id,
                "annotation_id": new.annotation_id,
                "task_id": task_id,
                "draw_id": draw_id,
                "round_number": number,
                "created_at": new.created_at,
                "imported": new.imported and draw_id is None,
            }
            added.append(label)
            changed.add(new.annotation_id)
        elif _is_old(new, label, read_there):
            continue
        elif any(label[name] != value for name, value in said.items()):
            changed.add(new.annotation_id)
        label |= said | {"annotator": new.annotator, "updated_at": new.updated_at}
        if "id" in label:
            told[new.annotation_id] = label
    # all at once, and not as objects of their own: a webhook would cost several times as much
    if added:
        session.execute(_ADD, added)
    if told:
        session.execute(update(Label), list(told.values()))
    return len(changed)


def record_given(session: Session, project: Project, classes: Mapping[int, str]) -> int:
    """Stores the labels that the tasks of a data set came with, by the task's `studio_id`: one for each, under the same
    number, all at once where `record` would take minutes. Returns how many are new or changed. Call with the project
    locked."""
    moment, number = now(), rounds.collecting(session, project)
    held = {
        row.annotation_id: row
        for row in session.execute(
            select(Label.id, Label.annotation_id, Label.class_name, Label.deleted).where(Label.project_id == project.id)
        )
    }
    tasks = select(Task.studio_id, Task.id).where(Task.project_id == project.id)
    task_ids = {studio_id: task_id for studio_id, task_id in session.execute(tasks)}
    new: list[dict[str, object]] = []
    changed: list[dict[str, object]] = []
    for studio_id, class_name in classes.items():
        known = held.get(studio_id)
        said = {"class_name": class_name, "updated_at": moment, "deleted": False}
        if known is None:
            fixed = {"project_id": project.id, "annotation_id": studio_id, "task_id": task_ids[studio_id]}
            plain = {"skipped": False, "ground_truth": False, "imported": True}
            new.append({**said, **fixed, **plain, "created_at": moment, "round_number": number})
        elif known.deleted or known.class_name != class_name:
            changed.append({**said, "id": known.id})
    if new:
        session.execute(insert(Label), new)
    if changed:
        session.execute(update(Label), changed)
    return len(new) + len(changed)


def delete(session: Session, project: Project, annotation_ids: Iterable[int]) -> int:
    """Takes labels back; their tasks can be asked for again. Returns how many were there."""
    count = 0
    for some in chunks(list(annotation_ids)):
        gone = cast(CursorResult[Any], session.execute(_DELETE, {"project": project.id, "some": some}))
        count += gone.rowcount
    return count


def live_annotations(session: Session, project: Project, studio_ids: Iterable[int]) -> dict[int, int]:
    """The annotations that these tasks are believed to have: their ids, each with Label Studio's id of its task."""
    found: dict[int, int] = {}
    for some in chunks(list(studio_ids)):
        rows = session.execute(
            select(Label.annotation_id, Task.studio_id)
            .join(Task)
            .where(Task.project_id == project.id, Task.studio_id.in_(some), ~Label.deleted)
        )
        found |= {annotation_id: studio_id for annotation_id, studio_id in rows}
    return found


def problems(session: Session, project: Project) -> dict[str, int]:
    """Labels that could not be understood, by reason."""
    rows = session.execute(
        select(Label.problem, func.count())
        .where(Label.project_id == project.id, ~Label.deleted, Label.problem.is_not(None))
        .group_by(Label.problem)
    )
    return {str(reason): count for reason, count in rows}


def _is_old(new: NewLabel, label: Mapping[str, Any], read_there: bool) -> bool:
    if label["deleted"] and not read_there:
        return bool(new.updated_at <= label["updated_at"])
    return bool(new.updated_at < label["updated_at"])


def _said(new: NewLabel) -> dict[str, Any]:
    return {
        "class_name": new.class_name,
        "skipped": new.skipped,
        "ground_truth": new.ground_truth,
        "problem": new.problem,
        "deleted": False,
    }


_OF_PROJECT = (Label.project_id == bindparam("project")) & Label.annotation_id.in_(bindparam("some", expanding=True))
_HELD = select(
    Label.id,
    Label.annotation_id,
    Label.class_name,
    Label.skipped,
    Label.ground_truth,
    Label.problem,
    Label.deleted,
    Label.updated_at,
).where(_OF_PROJECT)
_ADD = insert(Label)
_DELETE = update(Label).where(_OF_PROJECT, ~Label.deleted).values(deleted=True)


def _held(session: Session, project: Project, annotation_ids: list[int]) -> dict[int, dict[str, Any]]:
    held: dict[int, dict[str, Any]] = {}
    for some in chunks(annotation_ids):
        rows = session.execute(_HELD, {"project": project.id, "some": some}).mappings()
        held |= {row["annotation_id"]: dict(row) for row in rows}
    return held


_ASKING = (
    select(Draw.task_id, Draw.id, Round.drawn_at)
    .join(Round)
    .where(Draw.task_id.in_(bindparam("some", expanding=True)), Round.subset_id.is_(None))
    .order_by(Round.number)
)


def _asking_draws(session: Session, arrived: Sequence[tuple[int, NewLabel]], *, late: bool) -> dict[int, int]:
    """By annotation, the newest draw of its task when it was made; without one a label is manual. A round that is being
    published counts too: its first label may arrive before publishing has said that it is done.

    A label that was heard of `late` may be older than the draws of its task, which was drawn in ignorance of it. One
    that has just come was made just now, whatever Label Studio's clock says: if that is behind, the newest draw asked.
    """
    draws: dict[int, list[tuple[datetime, int]]] = {}
    for some in chunks(list({task_id for task_id, _new in arrived})):
        for task_id, draw_id, drawn_at in session.execute(_ASKING, {"some": some}):
            draws.setdefault(task_id, []).append((drawn_at, draw_id))
    found: dict[int, int] = {}
    for task_id, new in arrived:
        if known := draws.get(task_id):
            before = [draw_id for drawn_at, draw_id in known if drawn_at <= new.created_at]
            if before or not late:
                found[new.annotation_id] = before[-1] if before else known[-1][1]
    return found
