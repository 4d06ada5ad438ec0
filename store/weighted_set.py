"""The weighted training set as it is handed out: one row per labelled task, each saying how its weight came about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, or_, select
from sqlalchemy.orm import Session, joinedload

from store import rounds, subsets
from store.examples import MANUAL_WEIGHT
from store.settle import settle
from store.tables import Draw, Label, Project, Round, Subset, Task

CHUNK = 500
"""Tasks read at a time, so that a set of any size fits into memory."""

SEED, DRAWN, RESERVE, MANUAL, IMPORTED = "seed", "drawn", "reserve", "manual", "imported"
UNLABELLED, LABELLED = "unlabelled", "labelled"


@dataclass(frozen=True)
class WeightedRow:
    task: int
    """Label Studio's id of the task; its running number in a data set outside of Label Studio."""
    data: dict[str, Any]
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
    annotations: tuple[int, ...]


def rows(session: Session, project: Project, subset: Subset | None = None) -> Iterator[WeightedRow]:
    """By task. Of a subset: its tasks alone, as they were drawn for it. Of a project: all that its models train on
    now; a label of a class that is no more is left out of both. Give it a session of `Store.snapshot`, for it reads in
    parts."""
    training = subset or subsets.current(session, project)
    ids = list(session.scalars(_tasks(project, subset, training)))
    for start in range(0, len(ids), CHUNK):
        yield from _some(session, project, ids[start : start + CHUNK], training, only=subset is not None)


def _tasks(project: Project, subset: Subset | None, training: Subset | None) -> Select[int]:
    selected = select(Draw.task_id).join(Round).where(Round.subset_id == (training.id if training else None))
    came = Label.imported & Label.task_id.in_(selected)
    which = Label.task_id.in_(selected) if subset else or_(rounds.trains(project), came)
    usable = select(Label.task_id).where(Label.project_id == project.id, ~Label.deleted, Label.class_name.is_not(None))
    return (
        select(Task.id)
        .where(Task.project_id == project.id, ~Task.gone, Task.problem.is_(None), Task.id.in_(usable.where(which)))
        .order_by(Task.studio_id)
    )


def _some(
    session: Session, project: Project, ids: Sequence[int], training: Subset | None, *, only: bool
) -> Iterator[WeightedRow]:
    selected = _selected(session, ids, training)
    mine = rounds.trains(project) | (Label.imported & Label.task_id.in_(list(selected)))
    labels = session.execute(
        select(Label, Task.studio_id, Task.data)
        .join(Task, Label.task_id == Task.id)
        .where(Label.task_id.in_(ids), ~Label.deleted, Label.class_name.is_not(None), mine)
        .options(joinedload(Label.draw).joinedload(Draw.round))
        .order_by(Task.studio_id, Label.annotation_id)
    ).all()
    by_task: dict[int, list[Label]] = {}
    tasks: dict[int, tuple[int, dict[str, Any]]] = {}
    for label, studio_id, data in labels:
        by_task.setdefault(label.task_id, []).append(label)
        tasks[label.task_id] = studio_id, data
    for task_id, votes in by_task.items():
        asked = next((vote.draw for vote in votes if vote.draw is not None), None)
        draw = selected.get(task_id) if only else asked or selected.get(task_id)
        row = _row(*tasks[task_id], votes, draw)
        if row.class_name in project.classes:
            yield row


def _selected(session: Session, ids: Sequence[int], subset: Subset | None) -> dict[int, Draw]:
    """The subset's draws of these tasks; of a task drawn twice, the later, as in training."""
    if subset is None:
        return {}
    draws = session.scalars(
        select(Draw)
        .join(Round)
        .where(Round.subset_id == subset.id, Draw.task_id.in_(ids))
        .options(joinedload(Draw.round))
        .order_by(Round.number)
    )
    return {draw.task_id: draw for draw in draws}


def _row(studio_id: int, data: dict[str, Any], votes: Sequence[Label], draw: Draw | None) -> WeightedRow:
    imported = all(vote.imported for vote in votes)
    came = draw.round.subset_id is not None if draw else imported
    return WeightedRow(
        task=studio_id,
        data=data,
        class_name=settle(votes),
        weight=draw.weight if draw else MANUAL_WEIGHT,
        probability=draw.probability if draw else None,
        inclusion=draw.inclusion if draw else None,
        score=draw.score if draw else None,
        passes=draw.passes if draw else None,
        round=draw.round.number if draw else None,
        stratum=LABELLED if came else UNLABELLED,
        provenance=_provenance(draw, imported=imported),
        model_version=draw.round.model_version if draw else None,
        annotations=tuple(vote.annotation_id for vote in votes),
    )


def _provenance(draw: Draw | None, *, imported: bool) -> str:
    if draw is None:
        return IMPORTED if imported else MANUAL
    if draw.reserve:
        return RESERVE
    return DRAWN if draw.round.model_version is not None else SEED
