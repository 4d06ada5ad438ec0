"""What estimates rest on: how the batches of the annotators' rounds were answered, and which classes are known.

Pages ask for it every second, so only columns are read, each table once; and labels that came with their tasks, of
which there may be very many, are counted by the database.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Row, and_, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from store import pool
from store.tables import Draw, Label, Project, Round, RoundState, Task

CAME = -1
"""Since when a label is known that came with its task: before every round."""


@dataclass(frozen=True, slots=True)
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
class Answers:
    tasks: int
    """There, and readable: the whole pool."""
    skipped: int
    """Of those, skipped and labelled by nobody."""
    batches: Sequence[Batch]
    """By round; those without draws are left out."""
    known: Mapping[tuple[int, str], int]
    """Labelled tasks that are there and readable, whoever labelled them: how many of a class, by the number of the
    round that asked for them. Rounds after it were drawn without them. A label that nobody asked for counts for the
    round that was collecting when it came."""


def of_project(session: Session, project: Project) -> Answers:
    lost = _lost(session, project)
    draws = _draws(session, project)
    given = _given(session, project, {draw_id: number for draw_id, number, *_rest in draws})
    came = _came(session, project)
    for task_id in _came_too(session, project) if came else ():
        given.since[task_id] = CAME
    known = Counter((given.since[task], name) for task, name in given.classes.items() if task not in lost)
    known.update({(CAME, name): count for name, count in came.items()})
    return Answers(
        tasks=_size(session, project) - len(lost),
        skipped=len(given.skipped - lost),
        batches=_batches(session, project, draws, given, lost),
        known=known,
    )


@dataclass(frozen=True)
class _Given:
    """What annotators said, by task."""

    classes: dict[int, str]
    since: dict[int, int]
    skipped: set[int]


def _given(session: Session, project: Project, number_of: Mapping[int, int]) -> _Given:
    """`number_of` is the round of each draw. Where an annotator labels a task that came with a label, the annotator's
    counts, as in training."""
    rows = session.execute(
        select(Label.task_id, Label.class_name, Label.skipped, Label.draw_id, Label.round_number).where(
            Label.project_id == project.id, ~Label.imported, ~Label.deleted
        )
    )
    found, possible = _Given({}, {}, set()), set(project.classes)
    disputed: set[int] = set()
    for task_id, class_name, skipped, draw_id, round_number in rows:
        if skipped:
            found.skipped.add(task_id)
        if class_name not in possible:  # nor does a label of a class that is no more say anything
            continue
        # A draw may have been stored since the draws were read; its round is the one that collects.
        number = round_number if draw_id is None else number_of.get(draw_id, round_number)
        found.since[task_id] = min(number, found.since.get(task_id, number))
        if found.classes.setdefault(task_id, class_name) != class_name:
            disputed.add(task_id)
    for some in pool.chunks(sorted(disputed)):
        votes = and_(Label.task_id.in_(some), ~Label.imported, ~Label.deleted, _is_class(project))
        found.classes.update(pool.settled(session, votes))
    found.skipped.difference_update(found.classes)
    return found


def _batches(session: Session, project: Project, draws: Sequence[_Drawn], given: _Given, lost: Set[int]) -> list[Batch]:
    answers: dict[int, list[Answer]] = {}
    for _id, number, task_id, reserve, inclusion, predicted in draws:
        if not reserve:
            gone = task_id in lost
            said = None if gone else given.classes.get(task_id)
            answer = Answer(inclusion, predicted, said, task_id in given.skipped, gone)
            answers.setdefault(number, []).append(answer)
    rows = session.execute(
        select(Round.number, Round.model_version, Round.state, Round.pool_size, Round.examined)
        .where(_asks(project))
        .order_by(Round.number)
    )
    over = (RoundState.CLOSED, RoundState.TRAINED)
    return [
        Batch(number, model_version, state in over, pool_size, examined, answers[number])
        for number, model_version, state, pool_size, examined in rows
        if number in answers
    ]


_Drawn = Row[int, int, int, bool, float, str | None]
"""A draw's id, the number of its round, its task, whether it is of the reserve, its chance, and the predicted class."""


def _draws(session: Session, project: Project) -> Sequence[_Drawn]:
    return session.execute(
        select(Draw.id, Round.number, Draw.task_id, Draw.reserve, Draw.inclusion, Draw.predicted)
        .join(Round, Draw.round_id == Round.id)
        .where(_asks(project))
        .order_by(Draw.round_id, Draw.rank)
    ).all()


def _came(session: Session, project: Project) -> dict[str, int]:
    """How many tasks of each class came with their label, without those that an annotator has labelled as well."""
    by_hand = aliased(Label)
    again = exists().where(
        by_hand.task_id == Label.task_id, ~by_hand.imported, ~by_hand.deleted, by_hand.class_name.in_(project.classes)
    )
    theirs = and_(Label.project_id == project.id, Label.imported, ~Label.deleted, _is_class(project), ~again)
    by_task = (
        select(Label.task_id, func.min(Label.class_name).label("least"), func.max(Label.class_name).label("most"))
        .join(Task, Label.task_id == Task.id)
        .where(theirs, ~Task.gone, Task.problem.is_(None))
        .group_by(Label.task_id)
        .subquery()
    )
    agreed = select(by_task.c.least, func.count()).where(by_task.c.least == by_task.c.most).group_by(by_task.c.least)
    found = Counter({str(name): count for name, count in session.execute(agreed)})
    disputed = select(by_task.c.task_id).where(by_task.c.least != by_task.c.most)
    found.update(pool.settled(session, and_(theirs, Label.task_id.in_(disputed))).values())
    return found


def _came_too(session: Session, project: Project) -> list[int]:
    """Tasks that an annotator has labelled although they came with a label."""
    by_hand = aliased(Label)
    both = and_(by_hand.task_id == Label.task_id, ~by_hand.imported, ~by_hand.deleted)
    rows = select(Label.task_id).join(by_hand, both)
    mine = rows.where(Label.project_id == project.id, Label.imported, ~Label.deleted)
    return list(session.scalars(mine.distinct()))


def _lost(session: Session, project: Project) -> set[int]:
    rows = select(Task.id).where(Task.project_id == project.id, or_(Task.gone, Task.problem.is_not(None)))
    return set(session.scalars(rows))


def _size(session: Session, project: Project) -> int:
    """Of every task ever mirrored: an index alone tells that."""
    return session.scalar(select(func.count()).select_from(Task).where(Task.project_id == project.id)) or 0


def _asks(project: Project) -> ColumnElement[bool]:
    """A round that annotators answer."""
    return and_(Round.project_id == project.id, Round.subset_id.is_(None))


def _is_class(project: Project) -> ColumnElement[bool]:
    return Label.class_name.in_(project.classes)
