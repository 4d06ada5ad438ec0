"""The weighted training set as it is handed out: one row per labelled task, each saying how its weight came about."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, Text, and_, cast, func, literal, null, select
from sqlalchemy.orm import Session, aliased

from store import pool, rounds, subsets
from store.examples import MANUAL_WEIGHT
from store.settle import settle
from store.tables import Draw, Label, Project, Round, Subset, Task

CHUNK = 5_000
"""Rows that the database hands over at a time, so that a set of any size fits into memory."""

SEED, DRAWN, RESERVE, MANUAL, IMPORTED = "seed", "drawn", "reserve", "manual", "imported"
UNLABELLED, LABELLED = "unlabelled", "labelled"
STRATA = (LABELLED, UNLABELLED)


@dataclass(frozen=True)
class Part:
    """Which of the rows are wanted."""

    subset: int | None = None
    """The id of a subset: its tasks alone, as they were drawn for it. Else all that the project's models train on."""
    rounds: frozenset[int] | None = None
    """Those that a round of one of these numbers asked for; else those that nobody asked for as well."""
    stratum: str | None = None
    as_of: datetime | None = None
    """Labels made by then, of rounds and subsets that were there by then."""


class WeightedRow(NamedTuple):
    task: int
    """Label Studio's id of the task; its running number in a data set outside of Label Studio."""
    data: str
    """What Label Studio holds of it, as JSON; empty where it was not asked for."""
    class_name: str
    weight: float
    """With which it trains: min(1/probability, cap) for a drawn one."""
    probability: float | None
    """Of the coin that accepted it; None, like all of the draw, for a label nobody asked for."""
    inclusion: float | None
    """The chance to be accepted at all, for estimates."""
    score: float | None
    passes: int | None
    round: int | None
    stratum: str
    """Whether it came without a label or with one."""
    provenance: str
    model_version: str | None
    """The model that drew it; None for a seed."""
    annotations: list[int]
    annotators: list[int]
    created: datetime
    """When the first of its annotations was made."""
    updated: datetime
    """When the last of them was changed."""
    came: bool
    """Whether it came with a label, even where annotators have labelled it too."""


@dataclass(frozen=True)
class Doubts:
    """What a set as of an earlier moment cannot tell, for the store keeps no history of labels."""

    changed: int
    """Rows whose label was changed since: they say what it says now."""
    taken_back: int
    """Labels made by then that are deleted now, and left out, whether or not they were there then."""


def rows(session: Session, project: Project, part: Part, *, data: bool = True) -> Iterator[WeightedRow]:
    """By task; a label of a class that is no more is left out. Give it a session of `Store.snapshot`, for it reads in
    parts. What a task of several subsets or draws is in, is as in training: what annotators were asked for first, then
    the latest draw of the newest subset."""
    training = training_subset(session, project, part)
    drawing = {found.id: found for found in sequence(session, project, None, part)}
    if training is not None:
        drawing |= {found.id: found for found in sequence(session, project, training, part)}
    statement = _labels(_columns(training, data=data), project, part, training)
    found = session.connection().execute(statement, execution_options={"yield_per": CHUNK})
    classes = set(project.classes)
    for _task, group in groupby(found, key=itemgetter(0)):
        row = _row(list(group), drawing, only=part.subset is not None)
        if row.class_name in classes and _wanted(row, part):
            yield row


def sequence(session: Session, project: Project, subset: Subset | None, part: Part) -> list[Round]:
    """The rounds, of the annotators or of a subset, that were drawn by then, in order."""
    drawn = rounds.all_of(session, project, subset)
    return [found for found in drawn if part.as_of is None or found.drawn_at <= part.as_of]


def training_subset(session: Session, project: Project, part: Part) -> Subset | None:
    """The subset whose tasks are among the rows."""
    if part.subset is not None:
        return subsets.by_id(session, part.subset)
    found = subsets.current(session, project)
    if found is None or part.as_of is None:
        return found
    there = [subset for subset in subsets.all_of(session, project) if subset.created_at <= part.as_of]
    return there[-1] if there else None


def most(session: Session, project: Project, part: Part) -> int:
    """How many rows there are at most, without looking at each."""
    statement = _labels([Task.id.distinct()], project, part, training_subset(session, project, part))
    tasks = statement.order_by(None)
    return session.scalar(select(func.count()).select_from(tasks.subquery())) or 0


def fingerprint(session: Session, project: Project, part: Part) -> str:
    """Of all that the rows are made of, much sooner than by making them: another one, another set. Draws and rounds
    never change once they are stored, so their ids stand for them."""
    training = training_subset(session, project, part)
    numbers = (Task.studio_id, Label.annotation_id, Label.ground_truth, Label.imported, Label.annotator)
    chosen = null() if training is None else _CHOSEN.id
    read = (*numbers, Label.created_at, Label.updated_at, Label.draw_id, chosen, func.length(Label.class_name))
    line: ColumnElement[str] = literal("")
    for column in (*read, Label.class_name, Task.data):
        line = line + func.coalesce(cast(column, Text), "-") + literal(" ")
    statement = _labels([line], project, part, training)
    digest = hashlib.sha256()
    found = session.connection().execute(statement, execution_options={"yield_per": CHUNK})
    for some in found.scalars().partitions():
        digest.update("\n".join(some).encode(errors="surrogatepass"))
    for whose in (None, training) if training else (None,):
        digest.update(repr([found.id for found in sequence(session, project, whose, part)]).encode())
    return digest.hexdigest()


def sizes(session: Session, project: Project) -> dict[str, int]:
    """How many tasks each stratum has that can be used, labelled or not: what its rows are to stand for."""
    there = (
        select(func.count()).select_from(Task).where(Task.project_id == project.id, ~Task.gone, Task.problem.is_(None))
    )
    whole = session.scalar(there) or 0
    came = session.scalar(there.where(Task.id.in_(pool.came_labelled_ids(project)))) or 0
    return {LABELLED: came, UNLABELLED: whole - came}


def skipped(session: Session, project: Project, part: Part) -> dict[int, int]:
    """How many of the tasks that a round asked for were skipped, by the round's id."""
    skips = (
        select(Draw.round_id, func.count(Label.task_id.distinct()))
        .join(Label, Label.draw_id == Draw.id)
        .where(Label.project_id == project.id, Label.skipped, ~Label.deleted)
        .group_by(Draw.round_id)
    )
    if part.as_of is not None:
        skips = skips.where(Label.created_at <= part.as_of)
    return {round_id: count for round_id, count in session.execute(skips)}


def doubts(session: Session, project: Project, moment: datetime) -> Doubts:
    made = select(func.count()).select_from(Label).where(Label.project_id == project.id, Label.created_at <= moment)
    changed = made.where(~Label.deleted, Label.class_name.is_not(None), Label.updated_at > moment)
    return Doubts(
        changed=session.scalar(changed) or 0,
        taken_back=session.scalar(made.where(Label.deleted)) or 0,
    )


_ASKED, _CHOSEN = aliased(Draw), aliased(Draw)
_OF_DRAW = ("reserve", "passes", "score", "probability", "weight", "inclusion", "round_id")


def _columns(training: Subset | None, *, data: bool) -> list[Any]:
    """What is read of each label of a task, with the draw that asked for it and that of the subset."""
    chosen = [null() if training is None else getattr(_CHOSEN, name) for name in _OF_DRAW]
    return [
        Task.studio_id,
        cast(Task.data, Text) if data else literal(""),
        Label.annotation_id,
        Label.class_name,
        Label.ground_truth,
        Label.imported,
        Label.annotator,
        Label.created_at,
        Label.updated_at,
        *(getattr(_ASKED, name) for name in _OF_DRAW),
        *(column.label(f"chosen_{name}") for name, column in zip(_OF_DRAW, chosen, strict=True)),
    ]


def _labels(columns: list[Any], project: Project, part: Part, training: Subset | None) -> Select[Any]:
    """One row for each label of a task that is in the set; more where the subset has drawn the task again."""
    which: ColumnElement[bool] = rounds.trains(project)
    if training is not None:
        chosen = _CHOSEN.id.is_not(None)
        which = chosen & (which | Label.imported) if part.subset is not None else which | (Label.imported & chosen)
    statement = (
        select(*columns)
        .select_from(Task)
        .join(Label, Label.task_id == Task.id)
        .outerjoin(_ASKED, Label.draw_id == _ASKED.id)
        .where(Task.project_id == project.id, ~Task.gone, Task.problem.is_(None))
        .where(~Label.deleted, Label.class_name.is_not(None), which)
        .order_by(Task.studio_id, Label.annotation_id)
    )
    if training is not None:
        of_subset = select(Round.id).where(Round.subset_id == training.id)
        if part.as_of is not None:
            of_subset = of_subset.where(Round.drawn_at <= part.as_of)
        statement = statement.outerjoin(_CHOSEN, and_(_CHOSEN.task_id == Task.id, _CHOSEN.round_id.in_(of_subset)))
    if part.as_of is not None:
        statement = statement.where(Label.created_at <= part.as_of)
    return statement


_FIRST = 9
"""Where the columns of the draw that asked begin; those of the subset's follow."""
_SECOND = _FIRST + len(_OF_DRAW)


def _row(votes: list[Any], drawing: Mapping[int, Round], *, only: bool) -> WeightedRow:
    first = votes[0]
    if len(votes) > 1:
        asked = next((vote for vote in votes if vote[_SECOND - 1] is not None), first)
        chosen = max(votes, key=lambda vote: _number(vote[-1], drawing))  # drawn twice: the later, as in training
        draw = asked[_FIRST:_SECOND] if asked[_SECOND - 1] is not None and not only else chosen[_SECOND:]
        votes = list({vote[2]: vote for vote in votes}.values())
        class_name, imported, came = settle(votes), all(v[5] for v in votes), any(v[5] for v in votes)
        created, updated = min(v[7] for v in votes), max(v[8] for v in votes)
        annotations = [vote[2] for vote in votes]
        annotators = list(dict.fromkeys(vote[6] for vote in votes if vote[6] is not None))
    else:
        draw = first[_FIRST:_SECOND] if first[_SECOND - 1] is not None and not only else first[_SECOND:]
        class_name, imported, created, updated = first[3], first[5], first[7], first[8]
        came = imported
        annotations, annotators = [first[2]], [] if first[6] is None else [first[6]]
    reserve, passes, score, probability, weight, inclusion, round_id = draw
    if round_id is None:
        origin = IMPORTED if imported else MANUAL
        stratum = LABELLED if imported else UNLABELLED
        return WeightedRow(
            *(first[0], first[1], class_name, MANUAL_WEIGHT, None, None, None, None, None, stratum, origin, None),
            *(annotations, annotators, created, updated, came),
        )
    round_ = drawing[round_id]
    stratum = UNLABELLED if round_.subset_id is None else LABELLED
    origin = RESERVE if reserve else SEED if round_.model_version is None else DRAWN
    return WeightedRow(
        *(first[0], first[1], class_name, weight, probability, inclusion, score, passes, round_.number),
        *(stratum, origin, round_.model_version, annotations, annotators, created, updated, came),
    )


def _number(round_id: int | None, drawing: Mapping[int, Round]) -> int:
    return -1 if round_id is None else drawing[round_id].number


def _wanted(row: WeightedRow, part: Part) -> bool:
    return (part.rounds is None or row.round in part.rounds) and part.stratum in (None, row.stratum)
