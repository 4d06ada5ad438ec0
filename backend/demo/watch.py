"""Looks at the loop from outside: where the open round stands, what each finished one took, what went wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from redis.exceptions import RedisError
from rq.job import Job, JobStatus
from sqlalchemy import exists, func, select
from sqlalchemy.orm import Session

from jobs import queues
from jobs.accuracy import Accuracy, of_rounds
from jobs.loop import due
from jobs.workplace import Workplace
from store import projects, rounds
from store.tables import Draw, Label, Model, Project, Round, RoundState, Task


@dataclass(frozen=True)
class FinishedRound:
    """A round whose model is trained. The seconds of draw and publish are those of the round that followed."""

    number: int
    labels: int
    """Examples its model was trained on, all rounds together."""
    model_version: str | None
    mean_weight: float
    train_seconds: float | None
    draw_seconds: float | None
    publish_seconds: float | None
    estimate: Accuracy | None = None
    """What the labels of the round it drew say of its model; None until they are in."""


@dataclass(frozen=True)
class Situation:
    number: int
    state: RoundState | None
    """None before the first round is drawn."""
    labels: int
    wanted: int
    queue: int
    """Tasks drawn for the last round, the reserve included."""
    due: str | None
    """The job that would move the loop on; None while labels are awaited or nothing is left to ask for."""
    progress: str
    """How far that job says it is."""
    job: str
    """That job's status and its last error, if there was one."""
    failed: str | None
    """The last error of a job that will not be tried again soon."""
    finished: tuple[FinishedRound, ...]

    @property
    def at_the_end(self) -> bool:
        """Every task of the pool is labelled."""
        return self.state == RoundState.TRAINED and self.due is None


def look(place: Workplace, project_id: int, estimates: dict[int, Accuracy]) -> Situation:
    """`estimates` keeps, between two looks, what each closed round's labels said of the model that drew it."""
    with place.store.read() as session:
        project = projects.by_id(session, project_id)
        every = rounds.all_of(session, project)
        last = every[-1] if every else None
        work = next(iter(due(session, project)), None)
        counts = rounds.progress(session, last) if last else None
        closed = {one.number for one in every if one.closed_at and one.model_version}
        if closed - estimates.keys():
            found = of_rounds(session, project)
            estimates |= {number: found[number] for number in closed & found.keys()}
        finished = _finished(session, project, every, estimates)
    job = _job(place, work.id) if work else JobSeen()
    return Situation(
        number=last.number if last else 0,
        state=last.state if last else None,
        labels=counts.labels if counts else 0,
        wanted=counts.wanted if counts else project.seed_size,
        queue=counts.drawn if counts else 0,
        due=work.id if work else None,
        progress=job.progress,
        job=job.words,
        failed=job.failed,
        finished=finished,
    )


def queued(place: Workplace, project_id: int) -> set[int]:
    """The tasks, by Label Studio's ids, that the last published queue still asks for."""
    with place.store.read() as session:
        opened = [one for one in rounds.all_of(session, projects.by_id(session, project_id)) if one.opened_at]
        if not opened:
            return set()
        answered = exists().where(Label.task_id == Task.id, ~Label.deleted)
        asked = select(Task.studio_id).join(Draw, Draw.task_id == Task.id).where(Draw.round_id == opened[-1].id)
        return set(session.scalars(asked.where(~answered, ~Task.gone)))


def _finished(
    session: Session, project: Project, every: Sequence[Round], estimates: Mapping[int, Accuracy]
) -> tuple[FinishedRound, ...]:
    models = {model.round_number: model for model in rounds.models(session, project)}
    weights = _mean_weights(session, project)
    following: list[Round | None] = [*every[1:], None]
    return tuple(
        replace(
            _finished_round(round_, after, models.get(round_.number), weights.get(round_.number, 1.0)),
            estimate=estimates.get(round_.number + 1),
        )
        for round_, after in zip(every, following, strict=True)
        if round_.state == RoundState.TRAINED
    )


def _finished_round(round_: Round, after: Round | None, model: Model | None, mean_weight: float) -> FinishedRound:
    return FinishedRound(
        number=round_.number,
        labels=model.examples if model else 0,
        model_version=model.version if model else None,
        mean_weight=mean_weight,
        train_seconds=_between(round_.closed_at, round_.trained_at),
        draw_seconds=_between(round_.trained_at, after.drawn_at) if after else None,
        publish_seconds=_between(after.drawn_at, after.opened_at) if after else None,
    )


def _mean_weights(session: Session, project: Project) -> dict[int, float]:
    rows = session.execute(
        select(Round.number, func.avg(Draw.weight))
        .join(Draw.round)
        .where(Round.project_id == project.id, ~Draw.reserve)
        .group_by(Round.number)
    )
    return {number: float(mean) for number, mean in rows}


def _between(start: datetime | None, end: datetime | None) -> float | None:
    return (end - start).total_seconds() if start and end else None


@dataclass(frozen=True)
class JobSeen:
    words: str = ""
    progress: str = ""
    failed: str | None = None


def _job(place: Workplace, job_id: str) -> JobSeen:
    try:
        job = queues.find(place.redis, job_id)
        if job is None:
            return JobSeen("not enqueued")
        status, error = job.get_status(refresh=False), _error(job)
    except (RedisError, OSError) as away:
        return JobSeen(f"Redis does not answer: {away}")
    words = f"{status}: {error}" if error else str(status)
    failed = (error or "no reason given") if status == JobStatus.FAILED else None
    return JobSeen(words, str(job.meta.get("progress", "")), failed)


def _error(job: Job) -> str:
    """What the job said of its last failure; of one that was killed, the last line RQ kept."""
    result = job.latest_result()
    lines = (result.exc_string or "").strip().splitlines() if result else []
    return str(job.meta.get("reason") or (lines[-1] if lines else ""))
