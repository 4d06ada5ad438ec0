"""The mirror of Label Studio's tasks, and the part of it that can still be drawn from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, exists, func, insert, select, update
from sqlalchemy.orm import Session, aliased

from store.settle import settle
from store.tables import Draw, Label, Project, Round, RoundState, Subset, Task

CHUNK = 500
"""Ids asked for in one statement; SQLite takes 32,766 variables, PostgreSQL 65,535."""


def mirror(session: Session, project: Project, tasks: Mapping[int, Mapping[str, Any]]) -> int:
    """Makes the store agree with tasks that were just read, by Label Studio's id; returns how many are new."""
    new: list[dict[str, Any]] = []
    revived = 0
    there = by_studio_id(session, project, tasks)
    for studio_id, data in tasks.items():
        task = there.get(studio_id)
        if task is None:
            new.append({"project_id": project.id, "studio_id": studio_id, "data": dict(data)})
            continue
        if task.data.get(project.field) != data.get(project.field):
            task.problem = None  # another image: it may be readable
        if task.data != data:
            task.data = dict(data)
        if task.gone:
            task.gone = False
            revived += 1
    session.flush()
    if new:
        session.execute(insert(Task), new)  # all at once: there may be tens of thousands
    return len(new) + revived


@dataclass(frozen=True)
class Known:
    """A mirrored task, without its data."""

    id: int
    gone: bool


_KNOWN = select(Task.studio_id, Task.id, Task.gone).where(
    Task.project_id == bindparam("project"), Task.studio_id.in_(bindparam("some", expanding=True))
)


def known(session: Session, project: Project, studio_ids: Iterable[int]) -> dict[int, Known]:
    """Those of the tasks that were ever mirrored, by Label Studio's id."""
    found: dict[int, Known] = {}
    for some in chunks(list(studio_ids)):
        rows = session.execute(_KNOWN, {"project": project.id, "some": some})
        found |= {studio_id: Known(id_, gone) for studio_id, id_, gone in rows}
    return found


def add(session: Session, project: Project, tasks: Mapping[int, Mapping[str, Any]]) -> dict[int, Known]:
    """Adds the tasks that are not known yet, and returns all of them. What is known of the others stays: a message may
    be a late copy."""
    there = known(session, project, tasks)
    new = sorted(tasks.keys() - there.keys())
    if new:
        rows = [{"project_id": project.id, "studio_id": task, "data": dict(tasks[task])} for task in new]
        session.execute(insert(Task), rows)
    return there | known(session, project, new)


def forget(session: Session, project: Project, studio_ids: Iterable[int]) -> None:
    """Marks tasks as deleted in Label Studio, and their labels with them: it sends no event for those."""
    for some in chunks(list(studio_ids)):
        ids = [task.id for task in by_studio_id(session, project, some).values()]
        session.execute(update(Task).where(Task.id.in_(ids)).values(gone=True))
        session.execute(update(Label).where(Label.task_id.in_(ids)).values(deleted=True))


@dataclass(frozen=True)
class Census:
    """How many tasks there are in a range of ids, and how many annotations on them, skips not counted: what Label
    Studio can tell of any range for the price of one request."""

    tasks: int
    annotations: int


def census(session: Session, project: Project, first: int, last: int) -> Census:
    within = (Task.project_id == project.id) & Task.studio_id.between(first, last) & ~Task.gone
    tasks = select(func.count()).select_from(Task).where(within)
    annotations = select(func.count()).select_from(Label).join(Task).where(within, ~Label.deleted, ~Label.skipped)
    return Census(session.scalar(tasks) or 0, session.scalar(annotations) or 0)


def ids_between(session: Session, project: Project, first: int, last: int) -> list[int]:
    """Label Studio's ids, in order, of the tasks believed to be there in a range."""
    within = Task.studio_id.between(first, last)
    rows = select(Task.studio_id).where(Task.project_id == project.id, within, ~Task.gone)
    return list(session.scalars(rows.order_by(Task.studio_id)))


def drawn(session: Session, project: Project, studio_ids: Iterable[int]) -> set[int]:
    """Those of the tasks that annotators were ever asked for."""
    found: set[int] = set()
    for some in chunks(list(studio_ids)):
        rows = select(Task.studio_id).where(Task.project_id == project.id, Task.studio_id.in_(some))
        asked = exists().where(Draw.task_id == Task.id, Draw.round_id == Round.id, Round.subset_id.is_(None))
        found |= set(session.scalars(rows.where(asked)))
    return found


def set_aside(session: Session, task_id: int, problem: str | None) -> None:
    """Or takes the task back, where there is no problem with it any more."""
    session.execute(update(Task).where(Task.id == task_id).values(problem=problem))


def give_another_chance(session: Session, project: Project) -> None:
    """Lets every task that was set aside be tried again."""
    session.execute(update(Task).where(Task.project_id == project.id).values(problem=None))


def by_studio_id(session: Session, project: Project, studio_ids: Iterable[int]) -> dict[int, Task]:
    found: dict[int, Task] = {}
    for ids in chunks(list(studio_ids)):
        rows = session.scalars(select(Task).where(Task.project_id == project.id, Task.studio_id.in_(ids)))
        found |= {task.studio_id: task for task in rows}
    return found


def data_of(session: Session, ids: Sequence[int]) -> list[dict[str, Any]]:
    """What Label Studio holds of the tasks with these ids, in their order; lighter than the tasks themselves."""
    found: dict[int, dict[str, Any]] = {}
    for some in chunks(list(ids)):
        found |= {row.id: row.data for row in session.execute(select(Task.id, Task.data).where(Task.id.in_(some)))}
    return [found[i] for i in ids]


def studio_ids_by(session: Session, project: Project, field: str) -> dict[str, int]:
    """Label Studio's id of every task ever mirrored, by what this field of it holds."""
    rows = session.execute(select(Task.data, Task.studio_id).where(Task.project_id == project.id))
    return {str(data.get(field)): studio_id for data, studio_id in rows}


def set_aside_ids(session: Session, project: Project) -> list[int]:
    rows = select(Task.id).where(Task.project_id == project.id, ~Task.gone, Task.problem.is_not(None))
    return list(session.scalars(rows.order_by(Task.studio_id)))


def known_ids(session: Session, project: Project) -> set[int]:
    """Label Studio's ids of all tasks believed to be there."""
    rows = session.scalars(select(Task.studio_id).where(Task.project_id == project.id, ~Task.gone))
    return set(rows)


def size(session: Session, project: Project) -> int:
    count = select(func.count()).select_from(Task).where(Task.project_id == project.id, ~Task.gone)
    return session.scalar(count) or 0


def drawable(session: Session, project: Project, *, at_least: int) -> list[int]:
    """Ids of the tasks a draw may choose from, in a stable order.

    Neither labelled nor skipped nor set aside, and not on annotators' screens right now: writing the weight of a task
    that is being labelled can make Label Studio lose count of its annotation. Where fewer than `at_least` such tasks
    are left, those on screen count too, for they are all there is.
    """
    free = _free(project)
    asking = (Round.project_id == project.id) & Round.subset_id.is_(None)
    latest = select(func.max(Round.number)).where(asking, Round.state != RoundState.DRAWN)
    on_screen = exists().where(
        Draw.task_id == Task.id,
        Draw.round_id == Round.id,
        asking,
        Round.number == latest.scalar_subquery(),
    )
    off_screen = list(session.scalars(free.where(~on_screen).order_by(Task.studio_id)))
    if len(off_screen) >= at_least:
        return off_screen
    return list(session.scalars(free.order_by(Task.studio_id)))


def any_drawable(session: Session, project: Project) -> bool:
    return session.scalar(_free(project).limit(1)) is not None


def came_labelled(session: Session, project: Project) -> int:
    """How many tasks came with a label that can be learnt: what subsets are selected from."""
    count = select(func.count(Label.task_id.distinct())).join(Task).where(_came_labelled(project))
    return session.scalar(count) or 0


def came_labelled_ids(project: Project) -> Select[int]:
    return select(Label.task_id).join(Task).where(_came_labelled(project))


def labels_that_came(session: Session, project: Project) -> dict[int, str]:
    """The tasks that came with a label, in a stable order, each with its class."""
    return settled(session, _came_labelled(project))


def selectable(session: Session, project: Project, subset: Subset) -> dict[int, str]:
    """Those that are not in the subset yet. One that an annotator has labelled as well is not among them: it trains
    already."""
    return settled(session, _selectable(project, subset))


def any_selectable(session: Session, project: Project, subset: Subset) -> bool:
    return session.scalar(select(Label.id).join(Task).where(_selectable(project, subset)).limit(1)) is not None


def unlabelled_count(session: Session, project: Project) -> int:
    labelled = exists().where(Label.task_id == Task.id, ~Label.deleted, Label.class_name.is_not(None))
    count = select(func.count()).select_from(Task).where(Task.project_id == project.id, ~Task.gone, ~labelled)
    return session.scalar(count) or 0


def problems(session: Session, project: Project) -> dict[str, int]:
    """Tasks set aside, by reason."""
    rows = session.execute(
        select(Task.problem, func.count())
        .where(Task.project_id == project.id, ~Task.gone, Task.problem.is_not(None))
        .group_by(Task.problem)
    )
    return {str(reason): count for reason, count in rows}


def settled(session: Session, which: ColumnElement[bool]) -> dict[int, str]:
    """The tasks that have such labels and can be read, in a stable order, each with the class they agree on."""
    rows = session.execute(
        select(Label.task_id, Label.class_name, Label.ground_truth, Label.updated_at, Label.annotation_id)
        .join(Task)
        .where(which, Task.problem.is_(None))
        .order_by(Task.studio_id)
    )
    return {task_id: settle(list(votes)) for task_id, votes in groupby(rows, key=attrgetter("task_id"))}


def _came_labelled(project: Project) -> ColumnElement[bool]:
    known = Label.class_name.in_(project.classes)
    return and_(Task.project_id == project.id, ~Task.gone, ~Label.deleted, Label.imported, known)


def _selectable(project: Project, subset: Subset) -> ColumnElement[bool]:
    drawn = exists().where(Draw.task_id == Task.id, Draw.round_id == Round.id, Round.subset_id == subset.id)
    by_hand = aliased(Label)
    trains_already = exists().where(
        by_hand.task_id == Task.id, ~by_hand.deleted, ~by_hand.imported, by_hand.class_name.is_not(None)
    )
    return and_(_came_labelled(project), Task.problem.is_(None), ~drawn, ~trains_already)


def _free(project: Project) -> Select[int]:
    touched = exists().where(Label.task_id == Task.id, ~Label.deleted)
    return select(Task.id).where(Task.project_id == project.id, ~Task.gone, Task.problem.is_(None), ~touched)


def chunks(ids: list[int]) -> Iterable[list[int]]:
    for start in range(0, len(ids), CHUNK):
        yield ids[start : start + CHUNK]
