"""What the loop is doing, gathered from the store and from RQ, for people and for pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from redis import Redis
from redis.exceptions import RedisError
from rq import Worker
from rq.registry import FailedJobRegistry, FinishedJobRegistry, ScheduledJobRegistry, StartedJobRegistry
from rq.utils import as_text
from sqlalchemy.orm import Session

import iwes
from jobs import estimates, queues
from jobs.accuracy import Accuracy
from jobs.estimates import Estimates
from jobs.loop import selecting
from jobs.queues import GPU, STUDIO
from jobs.workplace import Workplace
from store import labels, pool, projects, rounds, subsets
from store.tables import Mode, Project, Round, RoundState, Subset


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
class SubsetGlance:
    """As much as may be asked for every half a second."""

    name: str
    rule: str
    selected: int
    target: int
    """How many it is to have now."""
    state: str
    """What is due for it, in words; empty once it is complete and shown in Label Studio."""
    round: int | None
    """The number of its last round."""


@dataclass(frozen=True)
class SubsetStatus(SubsetGlance):
    rounds: list[RoundStatus]
    share_capped: float
    effective_size: float
    doubts: int


@dataclass(frozen=True)
class ProjectStatus:
    id: int
    title: str
    studio_url: str
    studio_id: int
    root: Path | None
    """Where the images of a data set outside of Label Studio lie."""
    network: str
    connected: bool
    mode: str
    drawn_by: str
    """The rules in force, for which tasks, in words."""
    tasks: int
    unlabelled: int
    came_labelled: int
    rounds: list[RoundStatus]
    subsets: list[SubsetStatus]
    labels_until_retrain: int | None
    """None while a round trains or none is open."""
    estimates: Estimates
    """What the labels say of what nobody has labelled."""
    problems: dict[str, int]
    reconciled_at: datetime | None


@dataclass(frozen=True)
class JobStatus:
    id: str
    state: str
    reason: str | None
    """The last line of the error, for a job that failed or waits for its next try."""
    progress: dict[str, Any] | None
    began: datetime | None = None
    ended: datetime | None = None
    """Of its last try."""


@dataclass(frozen=True)
class QueueStatus:
    reachable: bool
    workers: int
    waiting: dict[str, int]
    jobs: list[JobStatus]


def project_status(session: Session, project: Project) -> ProjectStatus:
    found = estimates.of_project(session, project)
    all_rounds = _rounds(session, project, {accuracy.round: accuracy for accuracy in found.curve})
    unlabelled, came = pool.unlabelled_count(session, project), pool.came_labelled(session, project)
    last = all_rounds[-1] if all_rounds else None
    waiting = last is not None and last.state == RoundState.OPEN
    return ProjectStatus(
        id=project.id,
        title=project.title,
        studio_url=project.studio_url,
        studio_id=project.studio_id,
        root=project.root,
        network=project.network,
        connected=project.connected,
        mode=project.mode,
        drawn_by=_drawn_by(project, unlabelled, came),
        tasks=pool.size(session, project),
        unlabelled=unlabelled,
        came_labelled=came,
        rounds=all_rounds,
        subsets=[subset_status(session, project, subset) for subset in subsets.all_of(session, project)],
        labels_until_retrain=max(0, last.wanted - last.labels) if last and waiting else None,
        estimates=found,
        problems=labels.problems(session, project) | pool.problems(session, project),
        reconciled_at=project.reconciled_at,
    )


def subset_glance(session: Session, project: Project, subset: Subset) -> SubsetGlance:
    last = rounds.latest(session, project, subset)
    return SubsetGlance(
        name=subset.name,
        rule=subset.rule,
        selected=subsets.selected(session, subset),
        target=subsets.target(session, project, subset),
        state=_subset_state(session, project, subset),
        round=last.number if last else None,
    )


def subset_status(session: Session, project: Project, subset: Subset) -> SubsetStatus:
    members = subsets.members(session, subset)
    weights = np.array([draw.weight for draw in members])
    chances = np.array([draw.probability for draw in members if draw.round.model_version is not None])
    return SubsetStatus(
        **vars(subset_glance(session, project, subset)),
        rounds=_rounds(session, project, {}, subset),
        share_capped=iwes.share_capped(chances, cap=subset.cap),
        effective_size=iwes.effective_size(weights),
        doubts=len(subsets.doubts(session, subset)),
    )


_STEPS = {
    "select": "drawing",
    "train": "training",
    "review": "looking at every label",
    "show": "writing weights into Label Studio",
}


def _subset_state(session: Session, project: Project, subset: Subset) -> str:
    if project.mode == Mode.ENT:
        return "at rest in mode ent"
    works = selecting(session, project, subset)
    if not works:
        return ""
    kind = works[0].function.rpartition(".")[2]
    names = " and ".join(work.id[-1] for work in works) if kind == "train" else ""
    return f"{_STEPS[kind]} {names}".strip()


def _drawn_by(project: Project, unlabelled: int, came: int) -> str:
    """What `mode: auto` comes to as the project stands now."""
    asking = f"IWeS-{project.rule} for {unlabelled} unlabelled tasks" if project.mode in (Mode.AUTO, Mode.ENT) else ""
    rule = "dis" if project.mode == Mode.AUTO else project.mode
    choosing = f"IWeS-{rule} for {came} that came with a label" if project.mode != Mode.ENT else ""
    parts = [asking] if asking and unlabelled else []
    parts += [choosing] if choosing and came else []
    return ", ".join(parts) or "nothing to draw from"


def _rounds(
    session: Session, project: Project, accuracies: Mapping[int, Accuracy], subset: Subset | None = None
) -> list[RoundStatus]:
    models = {
        model.round_number: ModelStatus(model.version, model.examples, model.metrics)
        for model in rounds.models(session, project, subset)
    }
    every = rounds.all_of(session, project, subset)
    progress = rounds.progress_of(session, every)
    return [_round_status(r, progress[r.id], models.get(r.number), accuracies.get(r.number)) for r in every]


def all_projects(place: Workplace) -> list[ProjectStatus]:
    with place.store.read() as session:
        return [project_status(session, project) for project in projects.all_known(session)]


def queue_status(redis: Redis, *, finished: int = 0) -> QueueStatus:
    """With so many of the jobs that were last finished, of each queue. Nothing is cleaned up on the way, as RQ would:
    that is the workers' to do."""
    try:
        found = [queues.queue(redis, name) for name in (STUDIO, GPU)]
        jobs: list[JobStatus] = []
        for queue in found:
            for state, registry in (
                ("running", StartedJobRegistry(queue=queue)),
                ("to be retried", ScheduledJobRegistry(queue=queue)),  # type: ignore[no-untyped-call]
                ("failed", FailedJobRegistry(queue=queue)),
            ):
                jobs += [_job_status(redis, job_id, state) for job_id in registry.get_job_ids(cleanup=False)]
            jobs += [JobStatus(job_id, "waiting", None, None) for job_id in queue.get_job_ids()]
            if finished:
                done: list[bytes] = redis.zrevrange(FinishedJobRegistry(queue=queue).key, 0, finished - 1)  # type: ignore[assignment]
                jobs += [_job_status(redis, as_text(name), "finished") for name in done]
        return QueueStatus(
            reachable=True,
            workers=len(Worker.all(connection=redis)),
            waiting={queue.name: len(queue) for queue in found},
            jobs=jobs,
        )
    except (RedisError, OSError):
        return QueueStatus(reachable=False, workers=0, waiting={}, jobs=[])


def _round_status(
    round_: Round, progress: rounds.Progress, model: ModelStatus | None, accuracy: Accuracy | None
) -> RoundStatus:
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
    failed = state in ("failed", "to be retried")
    return JobStatus(
        job.id,
        state,
        queues.reason(job) if failed else None,
        job.meta.get("progress"),
        began=_aware(job.started_at),
        ended=_aware(job.ended_at),
    )


def _aware(moment: datetime | None) -> datetime | None:
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment
