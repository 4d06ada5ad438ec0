"""What the loop is doing, gathered from the store and from RQ, for people and for pages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from redis import Redis
from redis.exceptions import RedisError
from rq import Worker
from rq.job import Job
from rq.registry import FailedJobRegistry, ScheduledJobRegistry, StartedJobRegistry
from sqlalchemy.orm import Session

from jobs import queues
from jobs.accuracy import Accuracy, of_rounds
from jobs.queues import GPU, STUDIO
from jobs.workplace import Workplace
from store import labels, pool, projects, rounds
from store.tables import Project, Round, RoundState


@dataclass(frozen=True)
class ModelStatus:
    version: str
    examples: int
    metrics: dict[str, Any]


@dataclass(frozen=True)
class RoundStatus:
    number: int
    state: RoundState
    rule: str
    labels: int
    wanted: int
    drawn: int
    skipped: int
    model_version: str | None
    model: ModelStatus | None
    """The model trained at this round's end."""
    problem: str | None
    """Why there is none."""
    accuracy: Accuracy | None
    """Of the model that drew this round, on the pool as it was then."""
    drawn_at: datetime
    opened_at: datetime | None
    closed_at: datetime | None
    trained_at: datetime | None


@dataclass(frozen=True)
class ProjectStatus:
    id: int
    title: str
    studio_url: str
    studio_id: int
    connected: bool
    tasks: int
    unlabelled: int
    rounds: list[RoundStatus]
    labels_until_retrain: int | None
    """None while a round trains or none is open."""
    problems: dict[str, int]
    reconciled_at: datetime | None


@dataclass(frozen=True)
class JobStatus:
    id: str
    state: str
    reason: str | None
    """The last line of the error, for a job that failed or waits for its next try."""
    progress: dict[str, Any] | None


@dataclass(frozen=True)
class QueueStatus:
    reachable: bool
    workers: int
    waiting: dict[str, int]
    jobs: list[JobStatus]


def project_status(session: Session, project: Project) -> ProjectStatus:
    models = {
        model.round_number: ModelStatus(model.version, model.examples, model.metrics)
        for model in rounds.models(session, project)
    }
    every = rounds.all_of(session, project)
    accuracies = of_rounds(session, project, every)
    all_rounds = [_round_status(session, r, models.get(r.number), accuracies.get(r.number)) for r in every]
    last = all_rounds[-1] if all_rounds else None
    waiting = last is not None and last.state == RoundState.OPEN
    return ProjectStatus(
        id=project.id,
        title=project.title,
        studio_url=project.studio_url,
        studio_id=project.studio_id,
        connected=project.connected,
        tasks=pool.size(session, project),
        unlabelled=pool.unlabelled_count(session, project),
        rounds=all_rounds,
        labels_until_retrain=max(0, last.wanted - last.labels) if last and waiting else None,
        problems=labels.problems(session, project) | pool.problems(session, project),
        reconciled_at=project.reconciled_at,
    )


def all_projects(place: Workplace) -> list[ProjectStatus]:
    with place.store.read() as session:
        return [project_status(session, project) for project in projects.all_known(session)]


def queue_status(redis: Redis) -> QueueStatus:
    try:
        found = [queues.queue(redis, name) for name in (STUDIO, GPU)]
        jobs: list[JobStatus] = []
        for queue in found:
            for state, registry in (
                ("running", StartedJobRegistry(queue=queue)),
                ("to be retried", ScheduledJobRegistry(queue=queue)),  # type: ignore[no-untyped-call]
                ("failed", FailedJobRegistry(queue=queue)),
            ):
                jobs += [_job_status(redis, job_id, state) for job_id in registry.get_job_ids()]
            jobs += [JobStatus(job_id, "waiting", None, None) for job_id in queue.get_job_ids()]
        return QueueStatus(
            reachable=True,
            workers=len(Worker.all(connection=redis)),
            waiting={queue.name: len(queue) for queue in found},
            jobs=jobs,
        )
    except (RedisError, OSError):
        return QueueStatus(reachable=False, workers=0, waiting={}, jobs=[])


def _round_status(session: Session, round_: Round, model: ModelStatus | None, accuracy: Accuracy | None) -> RoundStatus:
    progress = rounds.progress(session, round_)
    return RoundStatus(
        number=round_.number,
        state=round_.state,
        rule=round_.rule,
        labels=progress.labels,
        wanted=progress.wanted,
        drawn=progress.drawn,
        skipped=progress.skipped,
        model_version=round_.model_version,
        model=model,
        problem=round_.problem,
        accuracy=accuracy,
        drawn_at=round_.drawn_at,
        opened_at=round_.opened_at,
        closed_at=round_.closed_at,
        trained_at=round_.trained_at,
    )


def _job_status(redis: Redis, job_id: str, state: str) -> JobStatus:
    job = queues.find(redis, job_id.split(":")[0])
    if job is None:
        return JobStatus(job_id, state, None, None)
    return JobStatus(job.id, state, None if state == "running" else _reason(job), job.meta.get("progress"))


def _reason(job: Job) -> str | None:
    """What the job itself said; a job that was killed could not, then RQ's last line tells."""
    told = job.meta.get("reason")
    if told:
        return str(told)
    result = job.latest_result()
    text = (result.exc_string if result else None) or ""
    return text.strip().splitlines()[-1] if text.strip() else None
