"""The mirror of Label Studio's tasks, and the part of it that can still be drawn from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Select, exists, func, select, update
from sqlalchemy.orm import Session

from store.tables import Draw, Label, Project, Round, RoundState, Task

CHUNK = 500
"""Ids asked for in one statement; SQLite takes 32,766 variables, PostgreSQL 65,535."""


def mirror(session: Session, project: Project, tasks: Mapping[int, Mapping[str, Any]]) -> int:
    """Adds tasks not known yet and refreshes the data of known ones, by Label Studio's id; returns how many are new."""
    new = 0
    known = by_studio_id(session, project, tasks)
    for studio_id, data in tasks.items():
        task = known.get(studio_id)
        if task is None:
            session.add(Task(project_id=project.id, studio_id=studio_id, data=dict(data)))
            new += 1
            continue
        if task.data.get(project.field) != data.get(project.field):
            task.problem = None  # another image: it may be readable
        if task.data != data:
            task.data = dict(data)
        task.gone = False
    session.flush()
    return new


def forget(session: Session, project: Project, studio_ids: Iterable[int]) -> None:
    """Marks tasks as deleted in Label Studio, and their labels with them: it sends no event for those."""
    for task in by_studio_id(session, project, studio_ids).values():
        task.gone = True
        session.execute(update(Label).where(Label.task_id == task.id).values(deleted=True))


def set_aside(session: Session, task_id: int, problem: str) -> None:
    session.execute(update(Task).where(Task.id == task_id).values(problem=problem))


def give_another_chance(session: Session, project: Project) -> None:
    """Lets every task that was set aside be tried again."""
    session.execute(update(Task).where(Task.project_id == project.id).values(problem=None))


def by_studio_id(session: Session, project: Project, studio_ids: Iterable[int]) -> dict[int, Task]:
    found: dict[int, Task] = {}
    for ids in _chunks(list(studio_ids)):
        rows = session.scalars(select(Task).where(Task.project_id == project.id, Task.studio_id.in_(ids)))
        found |= {task.studio_id: task for task in rows}
    return found


def data_of(session: Session, ids: Sequence[int]) -> list[dict[str, Any]]:
    """What Label Studio holds of the tasks with these ids, in their order; lighter than the tasks themselves."""
    found: dict[int, dict[str, Any]] = {}
    for some in _chunks(list(ids)):
        found |= {row.id: row.data for row in session.execute(select(Task.id, Task.data).where(Task.id.in_(some)))}
    return [found[i] for i in ids]


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
    latest = select(func.max(Round.number)).where(Round.project_id == project.id, Round.state != RoundState.DRAWN)
    on_screen = exists().where(
        Draw.task_id == Task.id,
        Draw.round_id == Round.id,
        Round.project_id == project.id,
        Round.number == latest.scalar_subquery(),
    )
    off_screen = list(session.scalars(free.where(~on_screen).order_by(Task.studio_id)))
    if len(off_screen) >= at_least:
        return off_screen
    return list(session.scalars(free.order_by(Task.studio_id)))


def any_drawable(session: Session, project: Project) -> bool:
    return session.scalar(_free(project).limit(1)) is not None


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


def _free(project: Project) -> Select[int]:
    touched = exists().where(Label.task_id == Task.id, ~Label.deleted)
    return select(Task.id).where(Task.project_id == project.id, ~Task.gone, Task.problem.is_(None), ~touched)


def _chunks(ids: list[int]) -> Iterable[list[int]]:
    for start in range(0, len(ids), CHUNK):
        yield ids[start : start + CHUNK]
