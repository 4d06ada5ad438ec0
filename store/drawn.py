"""Draws as people ask for them: those that still wait for an answer, and what the answered ones weigh."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, exists, func, select
from sqlalchemy.orm import Session, contains_eager

from store.tables import Draw, Label, Project, Round, RoundState, Task


@dataclass(frozen=True)
class Left:
    """Of the tasks that annotators are served now, those that nobody has answered yet."""

    batch: int
    reserve: int
    reserve_drawn: int


def left(session: Session, round_: Round) -> Left:
    drawn = select(func.count()).select_from(Draw).join(Task).where(Draw.round_id == round_.id)
    waits = drawn.where(_unanswered())
    return Left(
        batch=session.scalar(waits.where(~Draw.reserve)) or 0,
        reserve=session.scalar(waits.where(Draw.reserve)) or 0,
        reserve_drawn=session.scalar(drawn.where(Draw.reserve)) or 0,
    )


def surfaced(session: Session, project: Project) -> Round | None:
    """The round whose tasks annotators are served: the last that was published."""
    published = select(Round).where(
        Round.project_id == project.id, Round.subset_id.is_(None), Round.state != RoundState.DRAWN, Round.batch_size > 0
    )
    return session.scalar(published.order_by(Round.number.desc()).limit(1))


def waiting(session: Session, round_: Round, most: int) -> list[Draw]:
    """The next tasks annotators get, in the order in which they get them."""
    unanswered = (
        select(Draw)
        .join(Task)
        .options(contains_eager(Draw.task))
        .where(Draw.round_id == round_.id, _unanswered())
        .order_by(Draw.rank)
    )
    return list(session.scalars(unanswered.limit(most)))


def weights(session: Session, project: Project) -> NDArray[np.float64]:
    """The training weight of every labelled task that a model's draw asked annotators for."""
    answered = exists().where(Label.draw_id == Draw.id, ~Label.deleted, Label.class_name.is_not(None))
    rows = session.scalars(
        select(Draw.weight)
        .join(Round)
        .where(Round.project_id == project.id, Round.subset_id.is_(None), Round.model_version.is_not(None), answered)
    )
    return np.array(rows.all(), np.float64)


def _unanswered() -> ColumnElement[bool]:
    answered = exists().where(Label.task_id == Task.id, ~Label.deleted)
    return ~Task.gone & Task.problem.is_(None) & ~answered
