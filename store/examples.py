"""The weighted training set: one example per labelled task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload

from store.tables import Label, Project, Task

MANUAL_WEIGHT = 1.0


@dataclass(frozen=True)
class Example:
    task_id: int
    studio_id: int
    data: dict[str, Any]
    class_name: str
    weight: float
    draw_id: int | None
    round_number: int
    """The round whose training was the first to see it."""


def of_project(session: Session, project: Project, *, up_to_round: int | None = None) -> list[Example]:
    """All examples, by task. `up_to_round` leaves out labels that count for a later round: a model that is trained
    again after a crash sees what it would have seen the first time."""
    rows = (
        select(Label)
        .join(Task)
        .where(Label.project_id == project.id, ~Label.deleted, Label.class_name.is_not(None), ~Task.gone)
    )
    if up_to_round is not None:
        rows = rows.where(Label.round_number <= up_to_round)
    labels = session.scalars(
        rows.options(joinedload(Label.task), joinedload(Label.draw)).order_by(Label.task_id, Label.id)
    ).all()
    by_task: dict[int, list[Label]] = {}
    for label in labels:
        by_task.setdefault(label.task_id, []).append(label)
    return [_example(group) for group in by_task.values() if group[0].task.problem is None]


def settle(labels: Sequence[Label]) -> str:
    """One class out of several annotations: ground truth wins, then the majority, and of equals the newest."""
    truths = [label for label in labels if label.ground_truth]
    voters = truths or list(labels)
    votes = Counter(label.class_name for label in voters)
    most = max(votes.values())
    newest = max((label for label in voters if votes[label.class_name] == most), key=_age)
    return str(newest.class_name)


def _example(labels: Sequence[Label]) -> Example:
    task = labels[0].task
    draw = next((label.draw for label in labels if label.draw is not None), None)
    return Example(
        task_id=task.id,
        studio_id=task.studio_id,
        data=task.data,
        class_name=settle(labels),
        weight=draw.weight if draw else MANUAL_WEIGHT,
        draw_id=draw.id if draw else None,
        round_number=min(label.round_number for label in labels),
    )


def _age(label: Label) -> tuple[Any, int]:
    return (label.updated_at, label.annotation_id)
