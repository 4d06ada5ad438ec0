"""What is due next for a project, read off the store alone, and the step that makes it happen.

Every job ends by asking this module what comes next; so do the webhook, the worker's tick and reconcile. A process
killed between two steps loses nothing: the store still says what is due, and whoever asks next enqueues it.
"""

from __future__ import annotations

import logging

from redis.exceptions import RedisError
from sqlalchemy.orm import Session

from jobs import queues
from jobs.queues import Work
from jobs.workplace import Workplace
from models.plan import CHOOSE, Plan
from store import pool, projects, rounds, subsets
from store.tables import Mode, Project, Round, RoundState, Subset

log = logging.getLogger(__name__)

TRAINING_SECONDS = 24 * 3600
"""Large networks take hours on a CPU, and so does looking at every label with one. A worker that died is found by its
heartbeat, not by this."""
TRAINING_RETRIES = (5, 30, 120)
"""Few: each try may take long, and annotators wait for what follows."""


def due(session: Session, project: Project) -> list[Work]:
    """The steps that would move the project on: of the annotators' rounds, and of each subset being selected. None
    while labels are awaited, or every task is labelled and every label trained on."""
    if not project.connected:
        return []
    return _asking(session, project) + _selecting(session, project)


def _asking(session: Session, project: Project) -> list[Work]:
    last = rounds.latest(session, project)
    if last is not None and last.state == RoundState.DRAWN:
        return [_step("publish", project, last.number)]
    if last is not None and last.state == RoundState.CLOSED:
        return [_step("train", project, last.number)]
    if project.mode not in (Mode.AUTO, Mode.ENT) or (last is not None and last.state == RoundState.OPEN):
        return []
    following = last.number + 1 if last else 0
    more = pool.any_drawable(session, project) or (last and rounds.new_labels(session, project, following))
    return [_step("draw", project, following)] if more else []


def _selecting(session: Session, project: Project) -> list[Work]:
    if project.mode == Mode.ENT:
        return []
    return [work for subset in subsets.all_of(session, project) for work in selecting(session, project, subset)]


def selecting(session: Session, project: Project, subset: Subset) -> list[Work]:
    """Rounds of a subset need nobody: drawn, trained on by f and g side by side, and again, until it is complete."""
    last = rounds.latest(session, project, subset)
    if last is not None and last.state == RoundState.CLOSED:
        return _trainings(project, subset, last, first=not rounds.models(session, project, subset))
    if subsets.wanted(session, project, subset):
        number = last.number + 1 if last else 0
        return [_subset_step(f"round-{number}-select", "select", project, subset, number)]
    if last is None:
        return []
    if not subset.auto and subset.reviewed_round != last.number:
        return [_subset_step(f"round-{last.number}-review", "review", project, subset)]
    if subset.published_round != last.number:
        return [_subset_step(f"round-{last.number}-show", "show", project, subset)]
    return []


def _trainings(project: Project, subset: Subset, last: Round, *, first: bool) -> list[Work]:
    """f and g at once; only where a learning rate is chosen on the seed set, g waits until f has chosen for both."""
    waits = first and Plan.from_dict(project.training).learning_rate == CHOOSE
    found = [] if last.f_trained_at else [_training(project, subset, last, "f")]
    if last.twins and not last.g_trained_at and not (found and waits):
        found.append(_training(project, subset, last, "g"))
    return found


def advance(workplace: Workplace, project_id: int, *, even_if_failed: bool = False) -> list[str]:
    """Enqueues what is due, once; returns the jobs' ids. A Redis that is away is no reason to fail: the worker's tick
    asks again as soon as it is back."""
    with workplace.store.read() as session:
        works = due(session, projects.by_id(session, project_id))
    try:
        for work in works:
            if queues.ensure(workplace.redis, work, even_if_failed=even_if_failed):
                log.info("enqueued %s", work.id)
    except (RedisError, OSError) as error:
        log.warning("Redis is away (%s): %s stays due and is enqueued later", error, ", ".join(w.id for w in works))
    return [work.id for work in works]


def reconcile_work(project: Project) -> Work:
    return Work(
        id=f"project-{project.id}-reconcile",
        function="jobs.reconcile.reconcile",
        arguments=(project.id,),
        queue=queues.STUDIO,
    )


def prepare(place: Workplace, project_id: int) -> None:
    """Has images fetched for the next draw while the labels of an open round are awaited. Where that is lost, with
    Redis or with a worker, nothing is due: the draw fetches what is missing."""
    with place.store.read() as session:
        project = projects.by_id(session, project_id)
        last = rounds.latest(session, project)
        if last is None or last.state != RoundState.OPEN:
            return
        number = last.number + 1
    work = Work(
        id=f"project-{project_id}-round-{number}-fetch",
        function="jobs.fetch.fetch",
        arguments=(project_id, number),
        queue=queues.GPU,
    )
    try:
        queues.ensure(place.redis, work, even_if_failed=True)
    except (RedisError, OSError) as error:
        log.info("Redis is away (%s): nothing is fetched ahead for round %s", error, number)


def _step(kind: str, project: Project, number: int) -> Work:
    return Work(
        id=f"project-{project.id}-round-{number}-{kind}",
        function=f"jobs.{kind}.{kind}",
        arguments=(project.id, number),
        queue=queues.STUDIO if kind == "publish" else queues.GPU,
        timeout=TRAINING_SECONDS if kind == "train" else queues.Work.timeout,
        first=True,
        retries=TRAINING_RETRIES if kind == "train" else queues.RETRY_SECONDS,
    )


def _training(project: Project, subset: Subset, last: Round, name: str) -> Work:
    return Work(
        id=f"project-{project.id}-{subset.name}-round-{last.number}-train-{name}",
        function="jobs.train.train",
        arguments=(project.id, last.number, subset.id, "fg".index(name)),
        queue=queues.GPU,
        timeout=TRAINING_SECONDS,
        retries=TRAINING_RETRIES,
    )


def _subset_step(name: str, kind: str, project: Project, subset: Subset, *more: int) -> Work:
    return Work(
        id=f"project-{project.id}-{subset.name}-{name}",
        function=f"jobs.{kind}.{kind}",
        arguments=(project.id, subset.id, *more),
        queue=queues.STUDIO if kind == "show" else queues.GPU,
        timeout=TRAINING_SECONDS,
    )
