"""Rounds: drawn, opened, closed by their last label, trained. Each step happens once, in one transaction.

A project's annotators have a sequence of rounds, and each of its subsets has one of its own; where no subset is named,
the annotators' are meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from sqlalchemy import ColumnElement, CursorResult, Select, bindparam, case, exists, func, or_, select, true, update
from sqlalchemy.orm import Session, aliased, contains_eager

from store.pool import chunks
from store.tables import Draw, Label, Mode, Model, Project, Round, RoundState, Subset, Task, now

SEED = "seed"
"""The rule of a round drawn uniformly, for want of a model."""


@dataclass(frozen=True)
class Progress:
    """How far a round has come: its labels against those wanted, and the draws nobody can answer any more."""

    labels: int
    wanted: int
    drawn: int
    settled: int
    skipped: int

    @property
    def needs(self) -> int:
        """How many more tasks must at least be answered or lost before the round is complete; at most 0 if it is."""
        return min(self.wanted - self.labels, self.drawn - self.settled)


def latest(session: Session, project: Project, subset: Subset | None = None) -> Round | None:
    return session.scalar(_rounds(project, subset).order_by(Round.number.desc()).limit(1))


def by_number(session: Session, project: Project, number: int, subset: Subset | None = None) -> Round:
    return session.scalars(_rounds(project, subset).where(Round.number == number)).one()


def all_of(session: Session, project: Project, subset: Subset | None = None) -> Sequence[Round]:
    return session.scalars(_rounds(project, subset).order_by(Round.number)).all()


_ASKING = (Round.project_id == bindparam("project")) & Round.subset_id.is_(None)
_STANDING = select(Round.number, Round.state).where(_ASKING).order_by(Round.number.desc()).limit(1)
_NEEDS = (
    update(Round)
    .where(_ASKING, Round.state == RoundState.OPEN, Round.needs > bindparam("arrived"))
    .values(needs=Round.needs - bindparam("arrived"))
    .execution_options(synchronize_session=False)
)


def collecting(session: Session, project: Project) -> int:
    """The number of the round whose training will see a label that arrives now."""
    last = session.execute(_STANDING, {"project": project.id}).first()
    if last is None:
        return 0
    number, state = last
    return number if state in (RoundState.DRAWN, RoundState.OPEN) else number + 1


def last_closed(session: Session, project: Project, moment: datetime) -> int:
    """The number of the last of the annotators' rounds that was closed by then; −1 before the first."""
    closed = select(func.max(Round.number)).where(
        Round.project_id == project.id, Round.subset_id.is_(None), Round.closed_at <= moment
    )
    found = session.scalar(closed)
    return -1 if found is None else found


def progress(session: Session, round_: Round) -> Progress:
    return progress_of(session, [round_])[round_.id]


def progress_of(session: Session, some: Sequence[Round]) -> dict[int, Progress]:
    """By the round's id, read at once for all of them.

    Of several annotations of one task one counts. Labels that answer an earlier round (its reserve, labelled while a
    model trained) train the next model but do not bring its round to an end: each round is judged on labels its own
    model asked for, so it waits for them.
    """
    live = ~Label.deleted
    skipped = exists().where(Label.task_id == Task.id, live, Label.skipped)
    settled: ColumnElement[bool] = or_(
        Task.gone, Task.problem.is_not(None), exists().where(Label.task_id == Task.id, live)
    )
    found: dict[int, Progress] = {}
    for ids in chunks([round_.id for round_ in some]):
        of_rounds = Draw.round_id.in_(ids)
        answered = session.execute(
            select(Draw.round_id, func.count(Label.task_id.distinct()))
            .join(Label, Label.draw_id == Draw.id)
            .where(of_rounds, Label.class_name.is_not(None), live)
            .group_by(Draw.round_id)
        )
        labels = {round_id: count for round_id, count in answered}
        counts = {
            row[0]: row[1:]
            for row in session.execute(
                select(Draw.round_id, func.count(), _sum(settled), _sum(skipped))
                .join(Task)
                .where(of_rounds)
                .group_by(Draw.round_id)
            )
        }
        for round_ in some:
            if round_.id in ids:
                drawn, done, passed = counts.get(round_.id, (0, 0, 0))
                found[round_.id] = Progress(labels.get(round_.id, 0), round_.wanted, drawn, done, passed)
    return found


def published_draws(session: Session, project: Project, studio_ids: Iterable[int]) -> list[Draw]:
    """Of those of the tasks that are labelled, the draw whose weights stand beside them in Label Studio: the newest
    that annotators were asked by."""
    labelled = exists().where(Label.task_id == Task.id, ~Label.deleted)
    newest: dict[int, Draw] = {}
    for some in chunks(list(studio_ids)):
        drawn = (
            select(Draw)
            .join(Round)
            .join(Task)
            .options(contains_eager(Draw.round), contains_eager(Draw.task))
            .where(Task.project_id == project.id, Task.studio_id.in_(some), ~Task.gone, labelled)
            .where(Round.subset_id.is_(None), Round.state != RoundState.DRAWN)
            .order_by(Round.number)
        )
        newest |= {draw.task_id: draw for draw in session.scalars(drawn)}
    return list(newest.values())


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


def add_selected(session: Session, project: Project, subset: Subset, round_: Round, draws: Iterable[Draw]) -> None:
    """A round of tasks that came with their label: closed at once, for there is nothing to wait for."""
    round_.subset_id = subset.id
    round_.twins = subset.twins
    add(session, project, round_, draws)
    _close(round_)


def open_(session: Session, round_: Round) -> None:
    if round_.state == RoundState.DRAWN:
        round_.state = RoundState.OPEN
        round_.opened_at = now()


def still_needs(session: Session, project: Project, *, arrived: int) -> bool:
    """Whether the open round surely needs more labels, though so many annotations and deleted tasks have been stored
    since this was last asked, and nothing else. If not, it has to be counted: see `close_if_complete`."""
    counted = cast(CursorResult[Any], session.execute(_NEEDS, {"project": project.id, "arrived": arrived}))
    return counted.rowcount > 0


def close_if_complete(session: Session, project: Project) -> Round | None:
    """Closes the open round when its last label is in; training is due from the moment this commits. A seed round ends
    as well when labels that were there already have made a model meanwhile: annotators need not go on with random
    tasks then. What they have labelled of them trains with the next model."""
    last = latest(session, project)
    if last is None or last.state != RoundState.OPEN:
        return None
    if last.rule == SEED and current_model(session, project) is not None:
        _close(last)
        last.state = RoundState.TRAINED
        last.f_trained_at = last.trained_at = now()
        return last
    last.needs = progress(session, last).needs
    return _close(last) if last.needs <= 0 else None


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
        trains(project),
    )
    return session.scalar(count) or 0


def trains(project: Project) -> ColumnElement[bool]:
    """Whether a label trains by itself. One that came with its task does so only where no subset is selected."""
    return true() if project.mode == Mode.ENT else ~Label.imported


def trained(
    session: Session,
    project: Project,
    round_: Round,
    model: Model | None,
    *,
    twin: bool = False,
    problem: str | None = None,
) -> None:
    """A training of the round is over. Where no model came out of it, `problem` says why, and the last one stays in
    use; where there never was one, the next round is a seed again. With its last training the round itself is over."""
    if round_.state != RoundState.CLOSED or (round_.g_trained_at if twin else round_.f_trained_at) is not None:
        return
    if twin:
        round_.g_trained_at = now()
    else:
        round_.f_trained_at = now()
    round_.problem = problem or round_.problem
    if model is not None:
        model.project_id = project.id
        model.subset_id = round_.subset_id
        model.round_number = round_.number
        model.twin = twin
        session.add(model)
    if round_.f_trained_at and (round_.g_trained_at or not round_.twins):
        round_.state = RoundState.TRAINED
        round_.trained_at = now()
        session.flush()
        close_if_complete(session, project)


def current_model(session: Session, project: Project) -> Model | None:
    """The f trained last, on what annotators have labelled and on the newest subset. One of an older subset counts only
    where there is no other: it does not know the tasks of the newest."""
    newest = select(func.max(Subset.id)).where(Subset.project_id == project.id).scalar_subquery()
    older = case((or_(Model.subset_id.is_(None), Model.subset_id == newest), 0), else_=1)
    return session.scalar(_models(project).where(~Model.twin).order_by(older, Model.id.desc()).limit(1))


def current_pair(session: Session, project: Project, subset: Subset) -> tuple[Model | None, Model | None]:
    """The f and the g that a subset trained last."""
    mine = _models(project).where(Model.subset_id == subset.id).order_by(Model.id.desc()).limit(1)
    return session.scalar(mine.where(~Model.twin)), session.scalar(mine.where(Model.twin))


def twin_of(session: Session, project: Project, version: str) -> Model | None:
    """The g that was trained beside the f of this version."""
    f, g = aliased(Model), aliased(Model)
    return session.scalar(
        select(g)
        .join(f, (f.project_id == g.project_id) & (f.subset_id == g.subset_id) & (f.round_number == g.round_number))
        .where(g.twin, ~f.twin, f.project_id == project.id, f.version == version)
    )


def models(session: Session, project: Project, subset: Subset | None = None, *, twin: bool = False) -> Sequence[Model]:
    """By round; of the annotators' rounds, or of a subset's."""
    mine = _models(project).where(Model.subset_id == (subset.id if subset else None), Model.twin == twin)
    return session.scalars(mine.order_by(Model.round_number)).all()


def trained_on(session: Session, project: Project) -> dict[str, int]:
    """How many examples each model has seen, by its version."""
    rows = session.execute(select(Model.version, Model.examples).where(Model.project_id == project.id))
    return {version: examples for version, examples in rows}


def versions(session: Session, project: Project) -> Sequence[str]:
    """Of every model that annotators may meet, the oldest first."""
    return [model.version for model in session.scalars(_models(project).where(~Model.twin).order_by(Model.id))]


def versions_in_use(session: Session, project: Project) -> set[str]:
    """Of the first and the last model of each kind: what may be loaded again."""
    groups = select(func.min(Model.id), func.max(Model.id)).where(Model.project_id == project.id)
    ends = session.execute(groups.group_by(Model.subset_id, Model.twin)).all()
    ids = [number for pair in ends for number in pair]
    return set(session.scalars(select(Model.version).where(Model.id.in_(ids))))


def _sum(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.sum(case((condition, 1), else_=0))


def _rounds(project: Project, subset: Subset | None) -> Select[Round]:
    return select(Round).where(Round.project_id == project.id, Round.subset_id == (subset.id if subset else None))


def _models(project: Project) -> Select[Model]:
    return select(Model).where(Model.project_id == project.id)


def _close(round_: Round) -> Round:
    round_.state = RoundState.CLOSED
    round_.closed_at = now()
    return round_
