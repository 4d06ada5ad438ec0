"""The tasks that annotators get next, and why each was chosen; and the labels worth a second look."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.orm import Session

from store import drawn, subsets
from store.tables import Doubt, Draw, Project, Round

SHOWN = 24


@dataclass(frozen=True)
class NextTask:
    task: int
    rank: int
    reserve: bool
    score: float | None
    probability: float
    weight: float
    inclusion: float
    predicted: str | None
    why: str


@dataclass(frozen=True)
class Queue:
    round: int
    drawn_by: str
    batch_left: int
    reserve_left: int
    tasks: list[NextTask]


@dataclass(frozen=True)
class Doubted:
    task: int
    label: str
    suggested: str
    improbability: float
    disagreement: float


def queue(session: Session, project: Project) -> Queue | None:
    round_ = drawn.surfaced(session, project)
    if round_ is None:
        return None
    left = drawn.left(session, round_)
    tasks = [_next(draw, round_) for draw in drawn.waiting(session, round_, SHOWN)]
    return Queue(round_.number, round_.model_version or "chance", left.batch, left.reserve, tasks)


def second_look(session: Session, project: Project) -> list[Doubted]:
    """Of the newest subset that was looked through."""
    for subset in reversed(subsets.all_of(session, project)):
        found = subsets.doubts(session, subset)
        if found:
            return [_doubted(doubt) for doubt in found[:SHOWN]]
    return []


def _next(draw: Draw, round_: Round) -> NextTask:
    return NextTask(
        task=draw.task.studio_id,
        rank=draw.rank + 1,
        reserve=draw.reserve,
        score=draw.score,
        probability=draw.probability,
        weight=draw.weight,
        inclusion=draw.inclusion,
        predicted=draw.predicted,
        why=_why(draw, round_),
    )


def _why(draw: Draw, round_: Round) -> str:
    if draw.score is None:
        return "by chance: there was no model yet to ask"
    if draw.score**round_.sharpness < round_.floor:
        return "the model is sure of it; the floor gives every task a chance"
    if draw.score > 0.8:
        return "the model is torn between classes"
    if draw.score > 0.4:
        return "the model hesitates"
    return "the model is rather sure of it; its coin fell for it all the same"


def _doubted(doubt: Doubt) -> Doubted:
    return Doubted(
        task=doubt.task.studio_id,
        label=doubt.class_name,
        suggested=doubt.suggested,
        improbability=doubt.improbability,
        disagreement=doubt.disagreement,
    )
