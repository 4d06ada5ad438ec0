"""The weighted training set: one example per labelled task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.orm import Session, joinedload

from store import rounds
from store.pool import chunks
from store.settle import settle
from store.tables import Draw, Label, Project, Round, Subset, Task

MANUAL_WEIGHT = 1.0


@dataclass(frozen=True)
class Example:
    task_id: int
    studio_id: int
    data: dict[str, Any]
    class_name: str
    weight: float
    draw: Draw | None
    """Why it is in the set; None for a label nobody asked for."""
    seed: bool
    """Whether it is one of those a sequence of rounds began with."""


def of_project(
    session: Session, project: Project, *, up_to_round: int | None = None, subset: Subset | None = None
) -> list[Example]:
    """All examples, by task: what annotators have labelled, and what the subset has selected of tasks that came with a
    label. `up_to_round` leaves out labels that count for a later round of the annotators: a model that is trained
    again after a crash sees what it would have seen the first time."""
    selected = _selected(session, subset) if subset else {}
    usable = (
        select(Label).join(Task).where(Label.project_id == project.id, ~Label.deleted, Label.class_name.is_not(None))
    )
    asked = rounds.trains(project)
    if up_to_round is not None:
        asked &= Label.round_number <= up_to_round
    chosen = select(Draw.task_id).join(Round).where(Round.subset_id == subset.id) if subset else None
    which = asked if chosen is None else or_(asked, Label.imported & Label.task_id.in_(chosen))
    labels = session.scalars(
        usable.where(which, ~Task.gone, Task.problem.is_(None))
        .options(joinedload(Label.task), joinedload(Label.draw).joinedload(Draw.round))
        .order_by(Label.task_id, Label.id)
    ).all()
    by_task: dict[int, list[Label]] = {}
    for label in labels:
        by_task.setdefault(label.task_id, []).append(label)
    return [_example(group, selected.get(task_id)) for task_id, group in by_task.items()]


def classes_of(session: Session, project: Project, studio_ids: Iterable[int]) -> dict[int, str]:
    """The settled class of those of these tasks that have one, by Label Studio's id, whoever gave it."""
    found: dict[int, list[Label]] = {}
    for some in chunks(list(studio_ids)):
        rows = session.execute(
            select(Task.studio_id, Label)
            .join(Task)
            .where(
                Label.project_id == project.id,
                Task.studio_id.in_(some),
                ~Label.deleted,
                Label.class_name.is_not(None),
            )
        )
        for studio_id, label in rows:
            found.setdefault(studio_id, []).append(label)
    return {studio_id: settle(labels) for studio_id, labels in found.items()}


def _selected(session: Session, subset: Subset) -> dict[int, Draw]:
    draws = session.scalars(
        select(Draw).join(Round).where(Round.subset_id == subset.id).options(joinedload(Draw.round))
    )
    return {draw.task_id: draw for draw in draws}


def _example(labels: Sequence[Label], selected: Draw | None) -> Example:
    task = labels[0].task
    draw = next((label.draw for label in labels if label.draw is not None), None) or selected
    first = min(label.round_number for label in labels)
    return Example(
        task_id=task.id,
        studio_id=task.studio_id,
        data=task.data,
        class_name=settle(labels),
        weight=draw.weight if draw else MANUAL_WEIGHT,
        draw=draw,
        seed=selected.round.number == 0 if draw is selected and selected is not None else first == 0,
    )
