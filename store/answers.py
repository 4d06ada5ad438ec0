"""What estimates rest on: how the batches of the annotators' rounds were answered, and which classes are known.

Pages ask for it every second, so only columns are read, and what can be counted is counted by the database.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from sqlalchemy import ColumnElement, Integer, and_, case, cast, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from store import pool
from store.tables import Draw, Label, Project, Round, RoundState, Task

CAME = -1
"""Since when a label is known that came with its task: before every round."""


@dataclass(frozen=True)
class Answer:
    """One task of a batch."""

    inclusion: float
    predicted: str | None
    """The class that the drawing model gave it."""
    class_name: str | None
    """The class that annotators gave it; None where it is skipped, lost or still waits."""
    skipped: bool
    lost: bool
    """Deleted since, or set aside: no longer part of what is estimated."""


@dataclass(frozen=True)
class Batch:
    """The tasks that a round asked for, without its reserve: that one is there to bridge the training."""

    number: int
    model_version: str | None
    """The model that drew it; None for a seed."""
    complete: bool
    """Whether the round is closed, so that no more labels are awaited."""
    pool_size: int
    examined: int
    answers: Sequence[Answer]


@dataclass(frozen=True)
class Known:
    """So many labelled tasks of a class, asked for by the same round."""

    class_name: str
    since: int
    """The number of the round that asked for them, or that was collecting when a label came that nobody had asked
    for. Rounds after it were drawn without them."""
    tasks: int


def batches(session: Session, project: Project) -> list[Batch]:
    """By round; those without draws are left out."""
    lost = or_(Task.gone, Task.problem.is_not(None))
    rows = session.execute(
        select(
            Round.id.label("round_id"),
            Draw.task_id,
            Draw.inclusion,
            Draw.predicted,
            lost.label("lost"),
            func.min(Label.class_name).label("first"),
            func.max(Label.class_name).label("last"),
            func.max(cast(Label.skipped, Integer)).label("skipped"),
        )
        .select_from(Round)
        .join(Draw, Draw.round_id == Round.id)
        .join(Task, Draw.task_id == Task.id)
        .outerjoin(Label, and_(Label.task_id == Task.id, ~Label.deleted, or_(Label.skipped, _is_class(project))))
        .where(Round.project_id == project.id, Round.subset_id.is_(None), ~Draw.reserve)
        .group_by(Round.id, Draw.id, Task.id)
        .order_by(Round.number, Draw.rank)
    ).all()
    settled = _settled(session, project, [row.task_id for row in rows if row.first != row.last])
    of_round = {
        round_id: [
            Answer(
                inclusion=row.inclusion,
                predicted=row.predicted,
                class_name=None if row.lost else settled.get(row.task_id, row.first),
                skipped=bool(row.skipped),
                lost=row.lost,
            )
            for row in group
        ]
        for round_id, group in groupby(rows, key=attrgetter("round_id"))
    }
    drawn = select(Round.id, Round.number, Round.model_version, Round.state, Round.pool_size, Round.examined)
    mine = drawn.where(Round.project_id == project.id, Round.subset_id.is_(None)).order_by(Round.number)
    return [
        Batch(
            number=row.number,
            model_version=row.model_version,
            complete=row.state in (RoundState.CLOSED, RoundState.TRAINED),
            pool_size=row.pool_size,
            examined=row.examined,
            answers=of_round[row.id],
        )
        for row in session.execute(mine)
        if row.id in of_round
    ]


def known(session: Session, project: Project) -> list[Known]:
    """Every labelled task that is still there and can be read, whoever labelled it."""
    since = case((Label.imported, CAME), (Round.number.is_not(None), Round.number), else_=Label.round_number)
    by_task = (
        select(
            Label.task_id,
            func.min(Label.class_name).label("first"),
            func.max(Label.class_name).label("last"),
            func.min(since).label("since"),
        )
        .join(Task, Label.task_id == Task.id)
        .outerjoin(Draw, Label.draw_id == Draw.id)
        .outerjoin(Round, Draw.round_id == Round.id)
        .where(Label.project_id == project.id, ~Label.deleted, _is_class(project), ~Task.gone, Task.problem.is_(None))
        .group_by(Label.task_id)
        .subquery()
    )
    agreed = (
        select(by_task.c.first, by_task.c.since, func.count())
        .where(by_task.c.first == by_task.c.last)
        .group_by(by_task.c.first, by_task.c.since)
        .order_by(by_task.c.since, by_task.c.first)
    )
    found = [Known(*row) for row in session.execute(agreed)]
    disputed = session.execute(
        select(by_task.c.task_id, by_task.c.since).where(by_task.c.first != by_task.c.last)
    ).all()
    settled = _settled(session, project, [row.task_id for row in disputed])
    return found + [Known(settled[row.task_id], row.since, 1) for row in disputed]


def skipped(session: Session, project: Project) -> int:
    """Tasks that were skipped and that nobody has labelled."""
    other = aliased(Label)
    labelled = exists().where(other.task_id == Label.task_id, ~other.deleted, other.class_name.is_not(None))
    count = (
        select(func.count(Label.task_id.distinct()))
        .join(Task)
        .where(Label.project_id == project.id, ~Label.deleted, Label.skipped, ~Task.gone, ~labelled)
    )
    return session.scalar(count) or 0


def _settled(session: Session, project: Project, task_ids: list[int]) -> dict[int, str]:
    """The class of tasks whose annotations say different things."""
    found: dict[int, str] = {}
    for some in pool.chunks(task_ids):
        found |= pool.settled(session, and_(Label.task_id.in_(some), ~Label.deleted, _is_class(project)))
    return found


def _is_class(project: Project) -> ColumnElement[bool]:
    """A label of a class that is no more says nothing of those there are."""
    return Label.class_name.in_(project.classes)
