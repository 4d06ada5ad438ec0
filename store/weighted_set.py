"""The weighted training set as it is handed out: one row per labelled task, each saying how its weight came about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, groupby, product
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Integer, Select, Text, and_, cast, func, literal, null, select, type_coerce
from sqlalchemy.orm import Session, aliased

from store import rounds, subsets
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
    created: str
    """When the first of its annotations was made: in UTC, to the microsecond, as 2026-01-31T12:00:00.000000Z. A million
    times are read, and nearly all are only written again."""
    updated: str
    """When the last of them was changed."""
    came: bool
    """Whether it came with a label, even where annotators have labelled it too."""


class WeightedRows:
    """Many rows, by columns: what is done to a column takes a fraction of what it takes row by row, and a million rows
    are read."""

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self._columns = columns

    @classmethod
    def of(cls, rows: Sequence[WeightedRow]) -> WeightedRows:
        """At least one."""
        return cls(dict(zip(WeightedRow._fields, zip(*rows, strict=True), strict=True)))

    def __getitem__(self, name: str) -> Sequence[Any]:
        return self._columns[name]

    def __len__(self) -> int:
        return len(self._columns["task"])

    def __iter__(self) -> Iterator[WeightedRow]:
        return map(WeightedRow._make, zip(*self._columns.values(), strict=True))


_NO_COLUMNS: dict[str, Sequence[Any]] = dict.fromkeys(WeightedRow._fields, ())


def rows(session: Session, project: Project, part: Part, *, data: bool = True) -> Iterator[WeightedRow]:
    """By task; a label of a class that is no more is left out. Give it a session of `Store.snapshot`, for it reads in
    parts. The draw of a task that has several is as in training: what annotators were asked by, else the latest of the
    newest subset."""
    return chain.from_iterable(chunks(session, project, part, data=data))


def chunks(session: Session, project: Project, part: Part, *, data: bool = True) -> Iterator[WeightedRows]:
    """The rows, many at a time."""
    training = training_subset(session, project, part)
    # a label may be older than the draw it was joined to, if it arrived late: so all rounds, whatever the moment
    of_subset = rounds.all_of(session, project, training) if training is not None else []
    kinds = _kinds([*rounds.all_of(session, project), *of_subset])
    wanted = {key for key, kind in kinds.items() if _is_wanted(kind, part)}
    classes = set(project.classes)
    for votes in _read(session, labels_of(_columns(session, part, data=data), project, part, training)):
        if len(set(map(itemgetter(0), votes))) < len(votes):
            votes = [_settled(list(group), kinds) for _, group in groupby(votes, itemgetter(0))]
        votes = [vote for vote in votes if vote[3] in classes]
        if len(wanted) < len(kinds):
            votes = [vote for vote in votes if (vote[-1], vote[10], vote[5]) in wanted]
        yield _rows(votes, kinds)


def _read(session: Session, statement: Select[Any]) -> Iterator[list[Any]]:
    """What the statement finds, in parts that end where a task ends."""
    held: list[Any] = []
    found = session.connection().execute(statement, execution_options={"yield_per": CHUNK})
    for read in found.partitions():
        votes = [*held, *read]
        end = len(votes) - 1
        while end and votes[end - 1][0] == votes[-1][0]:
            end -= 1
        held = votes[end:]
        yield votes[:end]
    yield held


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


_CHOSEN = aliased(Draw)


def _columns(session: Session, part: Part, *, data: bool) -> list[Any]:
    """What is read of each label, with the draw it is in the set by; in forms that need no work but to be read."""
    return [
        Task.studio_id,
        cast(Task.data, Text) if data else literal(""),
        Label.annotation_id,
        Label.class_name,
        type_coerce(Label.ground_truth, Integer).label("ground_truth"),
        type_coerce(Label.imported, Integer).label("imported"),
        Label.annotator,
        _as_text(session, Label.created_at).label("created_at"),
        _as_text(session, Label.updated_at).label("updated_at"),
        Label.draw_id if part.subset is None else null().label("draw_id"),
        type_coerce(Draw.reserve, Integer).label("reserve"),
        Draw.passes,
        Draw.score,
        Draw.probability,
        func.coalesce(Draw.weight, MANUAL_WEIGHT),
        Draw.inclusion,
        Draw.round_id,
    ]


def _as_text(session: Session, moment: Any) -> Any:
    if session.get_bind().dialect.name == "sqlite":
        return func.replace(cast(moment, Text), " ", "T") + literal("Z")
    return func.to_char(func.timezone("UTC", moment), 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')


def labels_of(columns: list[Any], project: Project, part: Part, training: Subset | None) -> Select[Any]:
    """One row for each label of a task that is in the set; more where the subset has drawn the task again."""
    which: ColumnElement[bool] = rounds.trains(project)
    drawn_by: ColumnElement[Any] = Label.draw_id.expression
    if training is not None:
        chosen = _CHOSEN.id.is_not(None)
        which = chosen & (which | Label.imported) if part.subset is not None else which | (Label.imported & chosen)
        drawn_by = _CHOSEN.id.expression if part.subset is not None else func.coalesce(Label.draw_id, _CHOSEN.id)
    statement = select(*columns).select_from(Task).join(Label, Label.task_id == Task.id)
    if training is not None:
        of_subset = select(Round.id).where(Round.subset_id == training.id)
        if part.as_of is not None:
            of_subset = of_subset.where(Round.drawn_at <= part.as_of)
        statement = statement.outerjoin(_CHOSEN, and_(_CHOSEN.task_id == Task.id, _CHOSEN.round_id.in_(of_subset)))
    if part.as_of is not None:
        statement = statement.where(Label.created_at <= part.as_of)
    return (
        statement.outerjoin(Draw, Draw.id == drawn_by)
        .where(Task.project_id == project.id, ~Task.gone, Task.problem.is_(None))
        .where(~Label.deleted, Label.class_name.is_not(None), which)
        .order_by(Task.studio_id, Label.annotation_id)
    )


class _Kind(NamedTuple):
    """What a row is by its round, whether it was in the reserve, and how many of its annotations came with it."""

    number: int | None
    stratum: str
    provenance: str
    model_version: str | None
    came: bool


def _is_wanted(kind: _Kind, part: Part) -> bool:
    of_round = part.rounds is None or kind.number in part.rounds
    return of_round and part.stratum in (None, kind.stratum)


NONE, SOME, ALL = 0, 0.5, 1
"""Of a task's annotations that came with it."""
_Kinds = dict[tuple[int | None, int | None, float], _Kind]


def _kinds(drawn: list[Round]) -> _Kinds:
    kinds: _Kinds = {
        (None, None, NONE): _Kind(None, UNLABELLED, MANUAL, None, False),
        (None, None, SOME): _Kind(None, UNLABELLED, MANUAL, None, True),
        (None, None, ALL): _Kind(None, LABELLED, IMPORTED, None, True),
    }
    for found, came in product(drawn, (NONE, SOME, ALL)):
        stratum = UNLABELLED if found.subset_id is None else LABELLED
        provenance = SEED if found.model_version is None else DRAWN
        for reserve in (0, 1):
            of = RESERVE if reserve else provenance
            kinds[found.id, reserve, came] = _Kind(found.number, stratum, of, found.model_version, came > NONE)
    return kinds


def _rows(votes: list[Any], kinds: _Kinds) -> WeightedRows:
    """One for each task."""
    if not votes:
        return WeightedRows(_NO_COLUMNS)
    (task, data, annotation, class_name, _truth, imported, annotator, created, updated, _asked, *draw) = zip(
        *votes, strict=True
    )
    reserve, passes, score, probability, weight, inclusion, round_id = draw
    found = [kinds[key] for key in zip(round_id, reserve, imported, strict=True)]
    number, stratum, provenance, version, came = zip(*found, strict=True)
    annotations = [one if type(one) is list else [one] for one in annotation]
    annotators = [one if type(one) is list else [] if one is None else [one] for one in annotator]
    columns = (
        *(task, data, class_name, weight, probability, inclusion, score, passes, number, stratum, provenance),
        *(version, annotations, annotators, created, updated, came),
    )
    return WeightedRows(dict(zip(WeightedRow._fields, columns, strict=True)))


def _settled(votes: list[Any], kinds: _Kinds) -> Any:
    """One annotation that says what all of a task's say together."""
    if len(votes) == 1:
        return votes[0]
    asked = [vote for vote in votes if vote.draw_id is not None]
    draw = asked[0] if asked else max(votes, key=lambda vote: kinds[vote.round_id, vote.reserve, NONE].number or 0)
    votes = list({vote.annotation_id: vote for vote in votes}.values())
    imported = ALL if all(vote.imported for vote in votes) else SOME if any(vote.imported for vote in votes) else NONE
    annotators = list(dict.fromkeys(vote.annotator for vote in votes if vote.annotator is not None))
    times = min(vote.created_at for vote in votes), max(vote.updated_at for vote in votes)
    said = (draw[0], draw[1], [vote.annotation_id for vote in votes], settle(votes), 0, imported, annotators, *times)
    return (*said, *draw[len(said) :])
