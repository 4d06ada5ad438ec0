"""Rounds: drawn, opened, closed by their last label, trained. Each step happens once, in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, exists, func, or_, select
from sqlalchemy.orm import Session

from store.tables import Draw, Label, Model, Project, Round, RoundState, Task, now


@dataclass(frozen=True)
class Progress:
    """How far a round has come: its labels against those wanted, and the draws nobody can answer any more."""

    labels: int
    wanted: int
    drawn: int
    settled: int
    skipped: int

    @property
    def complete(self) -> bool:
        return self.labels >= self.wanted or self.settled >= self.drawn


def latest(session: Session, project: Project) -> Round | None:
    return session.scalar(select(Round).where(Round.project_id == project.id).order_by(Round.number.desc()).limit(1))


def by_number(session: Session, project: Project, number: int) -> Round:
    return session.scalars(select(Round).where(Round.project_id == project.id, Round.number == number)).one()


def all_of(session: Session, project: Project) -> Sequence[Round]:
    return session.scalars(select(Round).where(Round.project_id == project.id).order_by(Round.number)).all()


def collecting(session: Session, project: Project) -> int:
    """The number of the round whose training will see a label that arrives now."""
    last = latest(session, project)
    if last is None:
        return 0
    return last.number if last.state in (RoundState.DRAWN, RoundState.OPEN) else last.number + 1


def collected(session: Session, round_: Round) -> int:
    """Tasks of this round's own draws that are labelled; several annotations of one task count once.

    Labels that answer an earlier round (its reserve, labelled while a model trained) train the next model but do not
    bring its round to an end: each round is judged on labels its own model asked for, so it waits for them.
    """
    count = (
        select(func.count(Label.task_id.distinct()))
        .join(Draw, Label.draw_id == Draw.id)
        .where(Draw.round_id == round_.id, Label.class_name.is_not(None), ~Label.deleted)
    )
    return session.scalar(count) or 0


def progress(session: Session, round_: Round) -> Progress:
    of_round = select(func.count()).select_from(Draw).join(Task).where(Draw.round_id == round_.id)
    skipped = exists().where(Label.task_id == Task.id, ~Label.deleted, Label.skipped)
    settled: ColumnElement[bool] = or_(
        Task.gone, Task.problem.is_not(None), exists().where(Label.task_id == Task.id, ~Label.deleted)
    )
    return Progress(
        labels=collected(session, round_),
        wanted=round_.wanted,
        drawn=session.scalar(of_round) or 0,
        settled=session.scalar(of_round.where(settled)) or 0,
        skipped=session.scalar(of_round.where(skipped)) or 0,
    )


def add(session: Session, project: Project, round_: Round, draws: Iterable[Draw]) -> None:
    """Stores a round with its draws. A round number exists once, so a second try at the same draw fails here."""
    round_.project_id = project.id
    round_.state = RoundState.DRAWN
    round_.draws = list(draws)
    session.add(round_)
    session.flush()


def add_closing(session: Session, project: Project, number: int) -> None:
    """A round without draws, closed at once: labels are left to train on, but no task to ask for."""
    settings = {name: getattr(project, name) for name in ("cap", "floor", "reserve", "sharpness")}
    round_ = Round(number=number, rule="none", wanted=0, batch_size=0, pool_size=0, examined=0, **settings)
    add(session, project, round_, [])
    _close(round_)


def open_(session: Session, round_: Round) -> None:
    if round_.state == RoundState.DRAWN:
        round_.state = RoundState.OPEN
        round_.opened_at = now()


def close_if_complete(session: Session, project: Project) -> Round | None:
    """Closes the open round when its last label is in; training is due from the moment this commits."""
    last = latest(session, project)
    if last is None or last.state != RoundState.OPEN or not progress(session, last).complete:
        return None
    return _close(last)


def close_early(session: Session, project: Project) -> Round | None:
    """Closes the open round although labels are missing, for `Start Training`; needs at least one new label."""
    last = latest(session, project)
    if last is None or last.state != RoundState.OPEN or not new_labels(session, project, last.number):
        return None
    return _close(last)


def new_labels(session: Session, project: Project, number: int) -> int:
    """Labelled tasks that the training of this round would be the first to see."""
    count = select(func.count(Label.task_id.distinct())).where(
        Label.project_id == project.id,
        Label.round_number == number,
        Label.class_name.is_not(None),
        ~Label.deleted,
    )
    return session.scalar(count) or 0


def trained(
    session: Session, project: Project, round_: Round, model: Model | None, *, problem: str | None = None
) -> None:
    """The round's training is done. Where no model came out of it, `problem` says why, and the last one stays in use;
    where there never was one, the next round is a seed again."""
    if round_.state != RoundState.CLOSED:
        return
    round_.state = RoundState.TRAINED
    round_.trained_at = now()
    round_.problem = problem
    if model is not None:
        model.project_id = project.id
        model.round_number = round_.number
        session.add(model)


def current_model(session: Session, project: Project) -> Model | None:
    return session.scalar(
        select(Model).where(Model.project_id == project.id).order_by(Model.round_number.desc()).limit(1)
    )


def models(session: Session, project: Project) -> Sequence[Model]:
    return session.scalars(select(Model).where(Model.project_id == project.id).order_by(Model.round_number)).all()


def _close(round_: Round) -> Round:
    round_.state = RoundState.CLOSED
    round_.closed_at = now()
    return round_
