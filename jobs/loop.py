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
from store import pool, projects, rounds
from store.tables import Project, RoundState

log = logging.getLogger(__name__)

TRAINING_SECONDS = 24 * 3600
"""Large networks take hours on a CPU. A worker that died is found by its heartbeat, not by this."""


def due(session: Session, project: Project) -> Work | None:
    """The step that would move the project on; None while labels are awaited, or every task is labelled
    and every label trained on."""
    if not project.connected:
        return None
    last = rounds.latest(session, project)
    if last is None:
        return _step("draw", project, 0) if pool.any_drawable(session, project) else None
    if last.state == RoundState.DRAWN:
        return _step("publish", project, last.number)
    if last.state == RoundState.CLOSED:
        return _step("train", project, last.number)
    if last.state == RoundState.TRAINED:
        following = last.number + 1
        if pool.any_drawable(session, project) or rounds.new_labels(session, project, following):
            return _step("draw", project, following)
    return None


def advance(workplace: Workplace, project_id: int, *, even_if_failed: bool = False) -> str | None:
    """Enqueues what is due, once; returns the job's id. A Redis that is away is no reason to fail: the worker's tick
    asks again as soon as it is back."""
    with workplace.store.read() as session:
        work = due(session, projects.by_id(session, project_id))
    if work is None:
        return None
    try:
        if queues.ensure(workplace.redis, work, even_if_failed=even_if_failed):
            log.info("enqueued %s", work.id)
    except (RedisError, OSError) as error:
        log.warning("Redis is away (%s): %s stays due and is enqueued later", error, work.id)
    return work.id


def reconcile_work(project: Project) -> Work:
    return Work(
        id=f"project-{project.id}-reconcile",
        function="jobs.reconcile.reconcile",
        arguments=(project.id,),
        queue=queues.STUDIO,
        retries=(),
    )


def _step(kind: str, project: Project, number: int) -> Work:
    return Work(
        id=f"project-{project.id}-round-{number}-{kind}",
        function=f"jobs.{kind}.{kind}",
        arguments=(project.id, number),
        queue=queues.STUDIO if kind == "publish" else queues.GPU,
        timeout=TRAINING_SECONDS if kind == "train" else queues.Work.timeout,
    )
