"""Ends a round whose training failed for good, so that annotators go on with the last good model."""

from __future__ import annotations

import logging

from redis.exceptions import RedisError
from rq.job import JobStatus

from jobs import queues
from jobs.loop import due
from jobs.workplace import Workplace
from store import projects, rounds
from store.tables import RoundState

log = logging.getLogger(__name__)


def end_failed_training(place: Workplace, project_id: int) -> None:
    """The round ends without a model, as one does whose training diverged: the next is drawn with the last good model,
    or by chance where there is none, and its training sees these labels too.

    What counts is that every try failed by itself: an error, or a process killed for its memory. A training that only
    could not reach something goes on trying, and so does one of a subset, which nobody waits for.
    """
    with place.store.read() as session:
        project = projects.by_id(session, project_id)
        last = rounds.latest(session, project)
        if last is None or last.state != RoundState.CLOSED:
            return
        works = due(session, project)
    reason = _failed_for(place, works[0].id) if works else None
    if reason is None:
        return
    with place.store.write() as session:
        project = projects.lock(session, project_id)
        problem = f"{reason}; the last good model stays"
        rounds.trained(session, project, rounds.by_number(session, project, last.number), None, problem=problem)
    log.error("project %s round %s: the training is given up: %s", project_id, last.number, reason)


def _failed_for(place: Workplace, job_id: str) -> str | None:
    """Why every try of the job failed; None while it may still succeed, or nobody knows."""
    try:
        job = queues.find(place.redis, job_id)
    except (RedisError, OSError):
        return None
    if job is None or job.get_status(refresh=False) != JobStatus.FAILED or job.meta.get("away"):
        return None
    tries = len(job.retry_intervals or []) + 1
    return f"{queues.reason(job) or 'it ended without a word'} (after {tries} {'try' if tries == 1 else 'tries'})"
