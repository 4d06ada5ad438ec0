"""What estimates rest on: how the batches of the annotators' rounds were answered, and which classes are known.

Pages ask for it every second, and each export tells it, so only columns are read, a round at a time, and whatever can
be counted is counted by the database.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Integer, Row, Select, and_, exists, func, or_, select, type_coerce, union
from sqlalchemy.orm import Session, aliased

from store import pool
from store.tables import Draw, Label, Project, Round, RoundState, Task

CAME = -1
"""Since when a label is known that came with its task: before every round."""


READ_AT_ONCE = 5_000
"""Rows: one by one, each would take twice as long."""
NONE = -1
"""In the place of a class: there is none."""


@dataclass(frozen=True, eq=False)
class Foresight:
    """What the drawing model said of the tasks of a batch, and expected of all that it was asked about, before anybody
    had answered."""

    beliefs: NDArray[np.float32]
    """The probability of each class, a column for each."""
    shares: NDArray[np.float64]
    """Their mean over the tasks that the model was asked about."""
    confidence: NDArray[np.float32]
    """The probability of the model's own answer; NaN where nothing is known of a task."""
    sure: float | None
    """The mean of that over the tasks that the model was asked about; None where it was not kept."""
    asked_about: int
    """How many these are: those examined, and some more for the reserve."""

    def of(self, some: NDArray[np.bool_]) -> Foresight | None:
        """Of some of the tasks; None unless it is known of each."""
        if not np.isfinite(self.confidence[some]).all():
            return None
        return replace(self, beliefs=self.beliefs[some], confidence=self.confidence[some])


@dataclass(frozen=True, eq=False)
class Batch:
    """The tasks that a round asked for, without its reserve: that one is there to bridge the training. Arrays with one
    entry for each; a class is its place among the project's."""

    number: int
    model_version: str | None
    """The model that drew it; None for a seed."""
    complete: bool
    """Whether the round is closed, so that no more labels are awaited."""
    pool_size: int
    examined: int
    inclusion: NDArray[np.float64]
    predicted: NDArray[np.int64]
    """The class that the drawing model gave it; beyond the project's where it is a class no more."""
    given: NDArray[np.int64]
    """The class that annotators gave it; NONE where it is skipped, lost or still waits."""
    skipped: NDArray[np.bool_]
    """By annotators, and labelled by none."""
    lost: NDArray[np.bool_]
    """Deleted since, or set aside: no longer part of what is estimated."""
    foresight: Foresight | None = None


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
    lost = set(session.scalars(select(Task.id).where(Task.project_id == project.id, _is_lost())))
    rounds = _rounds(session, project)
    came = _came(session, project)
    known, skipped = _known(session, project, {found.id: found.number for found in rounds})
    known.update({(CAME, name): count for name, count in came.items()})
    return Answers(
        tasks=_size(session, project) - len(lost),
        skipped=skipped,
        batches=_batches(session, project, rounds, lost),
        known=known,
    )


def _known(session: Session, project: Project, number_of: Mapping[int, int]) -> tuple[Counter[tuple[int, str]], int]:
    """What annotators said of tasks that are there, and how many of those they skipped. Where one labels a task that
    came with a label, the annotator's counts, as in training; but the task was known before every round.

    Nearly every task has one label, and those are counted by the database. Those of the other tasks are taken out of
    the count again, and looked at together."""
    live = and_(Label.project_id == project.id, ~Label.imported, ~Label.deleted)
    said = (Label.class_name, Label.skipped, Draw.round_id, Label.round_number)
    everyone = select(*said, func.count()).outerjoin(Draw, Label.draw_id == Draw.id).where(live).group_by(*said)
    several = select(Label.task_id).where(Label.project_id == project.id).group_by(Label.task_id)
    lost = select(Task.id).where(Task.project_id == project.id, _is_lost())
    odd = union(several.having(func.count() > 1), lost)
    one_by_one = session.execute(
        select(Label.task_id, _is_lost(), Label.task_id.in_(_came_tasks(project)), *said)
        .join(Task, Label.task_id == Task.id)
        .outerjoin(Draw, Label.draw_id == Draw.id)
        .where(live, Label.task_id.in_(odd))
        .order_by(Label.task_id)
    )
    counts: Counter[_Said] = Counter()
    for class_name, skipped, round_id, round_number, count in session.execute(everyone):
        counts[_Said(class_name, skipped, round_id, round_number)] = count
    known: Counter[tuple[int, str]] = Counter()
    disputed: dict[int, int] = {}
    skips, classes = 0, set(project.classes)  # a label of a class that is no more says nothing
    for task_id, rows in groupby(one_by_one, key=itemgetter(0)):
        _same, (is_lost, *_), (came, *_), *columns = zip(*rows, strict=True)
        labels = [_Said(*one) for one in zip(*columns, strict=True)]
        counts.subtract(labels)
        counting = [label for label in labels if label.class_name in classes]
        names = {label.class_name for label in counting}
        if is_lost:
            continue
        if not names:
            skips += any(label.skipped for label in labels)
            continue
        since = CAME if came else min(label.number(number_of) for label in counting)
        if len(names) > 1:
            disputed[task_id] = since
        else:
            known[since, str(names.pop())] += 1
    for task_id, name in _settled(session, project, list(disputed)).items():
        known[disputed[task_id], name] += 1
    for label, count in counts.items():
        if label.class_name in classes:
            known[label.number(number_of), str(label.class_name)] += count
        elif label.skipped:
            skips += count
    return known, skips


class _Said(NamedTuple):
    """By a label, and for which round."""

    class_name: str | None
    skipped: bool
    round_id: int | None
    round_number: int

    def number(self, number_of: Mapping[int, int]) -> int:
        """Of the round that asked for it, or that was collecting when it came."""
        return self.round_number if self.round_id is None else number_of[self.round_id]


def _settled(session: Session, project: Project, tasks: Sequence[int]) -> dict[int, str]:
    """The classes that annotators agree on."""
    found: dict[int, str] = {}
    for some in pool.chunks(sorted(tasks)):
        votes = and_(Label.task_id.in_(some), ~Label.imported, ~Label.deleted, _is_class(project))
        found |= pool.settled(session, votes)
    return found


_Round = Row[int, int, str | None, RoundState, int, int, dict[str, Any] | None]
"""Its id, number, drawing model and state, how large the pool was, how much of it was looked at, and what the model
expected of it."""


def _rounds(session: Session, project: Project) -> Sequence[_Round]:
    """Those that annotators answer."""
    return session.execute(
        select(
            *(Round.id, Round.number, Round.model_version, Round.state),
            *(Round.pool_size, Round.examined, Round.expected),
        )
        .where(Round.project_id == project.id, Round.subset_id.is_(None))
        .order_by(Round.number)
    ).all()


def _batches(session: Session, project: Project, rounds: Sequence[_Round], lost: Set[int]) -> list[Batch]:
    over = (RoundState.CLOSED, RoundState.TRAINED)
    found = []
    for round_id, number, model_version, state, pool_size, examined, expected in rounds:
        asked = _asked(session, project, round_id, lost)
        if asked:
            foresight = _foresight(session, project, round_id, expected, pool_size) if expected else None
            found.append(Batch(number, model_version, state in over, pool_size, examined, **asked, foresight=foresight))
    return found


def _foresight(
    session: Session, project: Project, round_id: int, expected: Mapping[str, Any], pool_size: int
) -> Foresight:
    """Of the classes there are now: nothing was foreseen of those that came since."""
    names, means = expected["classes"], np.array(expected["shares"])
    unknown = np.full(len(names), np.nan, "<f4").tobytes()
    kept = session.scalars(select(Draw.beliefs).where(Draw.round_id == round_id, ~Draw.reserve).order_by(Draw.rank))
    rows = np.frombuffer(b"".join(row or unknown for row in kept), "<f4").reshape(-1, len(names))
    place_of = {name: place for place, name in enumerate(names)}
    here = [number for number, name in enumerate(project.classes) if name in place_of]
    there = [place_of[project.classes[number]] for number in here]
    beliefs, shares = np.zeros((len(rows), len(project.classes)), np.float32), np.zeros(len(project.classes))
    beliefs[:, here], shares[here] = rows[:, there], means[there]
    return Foresight(beliefs, shares, rows.max(axis=1), expected.get("sure"), min(expected["tasks"], pool_size))


def _asked(session: Session, project: Project, round_id: int, lost: Set[int]) -> dict[str, NDArray[Any]]:
    """The columns of a batch, if it has any. There is a row for each label of a task, and one where it has none."""
    live = and_(Label.task_id == Draw.task_id, ~Label.imported, ~Label.deleted)
    found = session.connection().execute(
        select(Draw.task_id, Draw.inclusion, Draw.predicted, Label.class_name, type_coerce(Label.skipped, Integer))
        .outerjoin(Label, live)
        .where(Draw.round_id == round_id, ~Draw.reserve)
        .order_by(Draw.rank)
    )
    place_of: dict[str | None, int] = {name: number for number, name in enumerate(project.classes)}
    guess_of: dict[str | None, int] = {**place_of, None: NONE}
    parts = [_columns(rows, place_of, guess_of) for rows in found.partitions(READ_AT_ONCE)]
    if not parts:
        return {}
    tasks, inclusion, predicted, given, skipped = (np.concatenate(column) for column in zip(*parts, strict=True))
    again = np.diff(tasks, prepend=NONE) == 0
    starts = np.flatnonzero(~again)
    several = set(tasks[again].tolist())
    tasks, given = tasks[starts], given[starts]
    settled = _settled(session, project, list(several))
    for place in np.flatnonzero(np.isin(tasks, list(several))) if several else ():
        given[place] = place_of.get(settled.get(int(tasks[place])), NONE)
    gone = np.isin(tasks, list(lost)) if lost else np.zeros(len(tasks), np.bool_)
    given[gone] = NONE
    return {
        "inclusion": inclusion[starts],
        "predicted": predicted[starts],
        "given": given,
        "skipped": np.logical_or.reduceat(skipped, starts) & (given == NONE) & ~gone,
        "lost": gone,
    }


def _columns(
    rows: Sequence[Row[*tuple[Any, ...]]], place_of: Mapping[str | None, int], guess_of: Mapping[str | None, int]
) -> tuple[NDArray[Any], ...]:
    tasks, inclusion, predicted, class_names, skipped = zip(*rows, strict=True)
    beyond = len(place_of)
    return (
        np.array(tasks, np.int64),
        np.array(inclusion, np.float64),
        np.array([guess_of.get(name, beyond) for name in predicted], np.int64),
        np.array([place_of.get(name, NONE) for name in class_names], np.int64),
        np.array(skipped, np.float64) > 0,  # None, of a task without a label, is no number and no skip
    )


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
        .where(theirs, ~_is_lost())
        .group_by(Label.task_id)
        .subquery()
    )
    agreed = select(by_task.c.least, func.count()).where(by_task.c.least == by_task.c.most).group_by(by_task.c.least)
    found = Counter({str(name): count for name, count in session.execute(agreed)})
    disputed = select(by_task.c.task_id).where(by_task.c.least != by_task.c.most)
    found.update(pool.settled(session, and_(theirs, Label.task_id.in_(disputed))).values())
    return found


def _came_tasks(project: Project) -> Select[int]:
    """Tasks that came with a label."""
    return select(Label.task_id).where(Label.project_id == project.id, Label.imported, ~Label.deleted)


def _size(session: Session, project: Project) -> int:
    """Of every task ever mirrored: an index alone tells that."""
    return session.scalar(select(func.count()).select_from(Task).where(Task.project_id == project.id)) or 0


def _is_lost() -> ColumnElement[bool]:
    """Deleted, or unreadable."""
    return or_(Task.gone, Task.problem.is_not(None))


def _is_class(project: Project) -> ColumnElement[bool]:
    return Label.class_name.in_(project.classes)
