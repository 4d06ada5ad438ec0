"""Labels as they arrive: recorded once, joined to the draw that asked for them, counted for a round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, insert, select, update
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


def record(session: Session, project: Project, task: Task, new: NewLabel) -> bool:
    """Stores an annotation, or what changed of it, and tells whether anything did. The same one twice, or an older
    state of it, changes nothing.

    Call with the project locked: which round a label counts for depends on whether that round is still open.
    """
    label = session.scalar(
        select(Label).where(Label.project_id == project.id, Label.annotation_id == new.annotation_id)
    )
    said: tuple[object, ...] = ()
    if label is None:
        draw = _asking_draw(session, task)
        label = Label(
            project_id=project.id,
            annotation_id=new.annotation_id,
            task_id=task.id,
            draw_id=draw.id if draw else None,
            round_number=rounds.collecting(session, project),
            created_at=new.created_at,
            imported=new.imported and draw is None,
        )
        session.add(label)
    elif new.updated_at < label.updated_at:
        return False
    else:
        said = (label.class_name, label.skipped, label.ground_truth, label.deleted, label.problem)
    label.class_name = new.class_name
    label.skipped = new.skipped
    label.ground_truth = new.ground_truth
    label.annotator = new.annotator
    label.updated_at = new.updated_at
    label.problem = new.problem
    label.deleted = False
    session.flush()
    return said != (label.class_name, label.skipped, label.ground_truth, label.deleted, label.problem)


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
        gone = session.scalars(
            select(Label).where(Label.project_id == project.id, Label.annotation_id.in_(some), ~Label.deleted)
        ).all()
        for label in gone:
            label.deleted = True
        count += len(gone)
    session.flush()
    return count


def live_annotations(session: Session, project: Project) -> dict[int, datetime]:
    """Every annotation believed to exist, with the time of its last known change."""
    rows = session.execute(
        select(Label.annotation_id, Label.updated_at).where(Label.project_id == project.id, ~Label.deleted)
    )
    return {annotation_id: updated_at for annotation_id, updated_at in rows}


def problems(session: Session, project: Project) -> dict[str, int]:
    """Labels that could not be understood, by reason."""
    rows = session.execute(
        select(Label.problem, func.count())
        .where(Label.project_id == project.id, ~Label.deleted, Label.problem.is_not(None))
        .group_by(Label.problem)
    )
    return {str(reason): count for reason, count in rows}


def _asking_draw(session: Session, task: Task) -> Draw | None:
    """The newest draw of the task; without one the label is manual. A round that is being published counts too:
    its first label may arrive before publishing has said that it is done."""
    return session.scalar(
        select(Draw)
        .join(Round)
        .where(Draw.task_id == task.id, Round.subset_id.is_(None))
        .order_by(Round.number.desc())
        .limit(1)
    )
