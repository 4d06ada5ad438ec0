"""The RQ queues, and the one way into them: under an id made of what a job is for, so that it waits there once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from redis import Redis
from redis.exceptions import RedisError
from rq import Queue, Retry
from rq.exceptions import DuplicateJobError, NoSuchJobError
from rq.job import Job, JobStatus
from rq.serializers import JSONSerializer

GPU = "gpu"
"""Training and scoring."""
STUDIO = "studio"
"""Talking to Label Studio."""
SERIALIZER = JSONSerializer
"""Not RQ's default pickle: what lies in Redis must never be able to run code here."""

RETRY_SECONDS = [2, 5, 15, 30, 60, 120, 300]
RESULT_SECONDS = 24 * 3600
FAILED_SECONDS = 30 * 24 * 3600
AGAIN_AFTER = timedelta(minutes=10)
"""A job that failed for good is tried anew after this long, in case its cause has gone."""


@dataclass(frozen=True)
class Work:
    """A piece of work: its id, the function's dotted name and its arguments."""

    id: str
    function: str
    arguments: tuple[int, ...]
    queue: str
    timeout: int = 3600
    first: bool = False
    """Whether it goes before all that waits: annotators are waiting for it."""
    retries: tuple[int, ...] = tuple(RETRY_SECONDS)


def queue(redis: Redis, name: str) -> Queue:
    return Queue(name, connection=redis, serializer=SERIALIZER)


def ensure(redis: Redis, work: Work, *, even_if_failed: bool = False) -> bool:
    """Sees to it that the work waits, runs or is to be retried; True if this call enqueued it.

    Finished work of the same id is done again: the caller found in the store that it is due. Failed work rests for
    `AGAIN_AFTER` first, so that its reason can be read, unless `even_if_failed`.
    """
    for _attempt in range(2):
        try:
            queue(redis, work.queue).enqueue_call(
                work.function,
                args=work.arguments,
                job_id=work.id,
                timeout=work.timeout,
                result_ttl=RESULT_SECONDS,
                failure_ttl=FAILED_SECONDS,
                retry=Retry(max=len(work.retries), interval=list(work.retries)) if work.retries else None,
                at_front=work.first,
                unique=True,
            )
        except DuplicateJobError:
            if not _may_replace(redis, work.id, even_if_failed):
                return False
        else:
            return True
    return False


def any_waiting(redis: Redis, name: str) -> bool:
    """Whether a job waits for a worker; a Redis that is away has none to offer."""
    try:
        return queue(redis, name).count > 0
    except (RedisError, OSError):
        return False


def find(redis: Redis, job_id: str) -> Job | None:
    try:
        return Job.fetch(job_id, connection=redis, serializer=SERIALIZER)
    except NoSuchJobError:
        return None


def _may_replace(redis: Redis, job_id: str, even_if_failed: bool) -> bool:
    job = find(redis, job_id)
    if job is None:
        return True
    status = job.get_status(refresh=True)
    if status in (JobStatus.FAILED, JobStatus.STOPPED, JobStatus.CANCELED):
        ended = job.ended_at or job.enqueued_at or datetime.now(UTC)
        rested = datetime.now(UTC) - ended.replace(tzinfo=ended.tzinfo or UTC) > AGAIN_AFTER
        if not (rested or even_if_failed):
            return False
    elif status is not None and status != JobStatus.FINISHED:
        return False
    job.delete()
    return True
