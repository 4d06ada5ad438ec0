"""The RQ queues, and the one way into them: under an id made of what a job is for, so that it waits there once."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from redis import Redis
from redis.client import Pipeline
from redis.exceptions import RedisError
from rq import Queue, Retry, Worker
from rq.exceptions import DequeueTimeout, NoSuchJobError
from rq.executions import ExecutionRegistry
from rq.job import Job, JobStatus
from rq.registry import CanceledJobRegistry, FailedJobRegistry, FinishedJobRegistry, ScheduledJobRegistry
from rq.registry import StartedJobRegistry as Running
from rq.results import Result
from rq.serializers import JSONSerializer
from rq.utils import as_text

GPU = "gpu"
"""Training and scoring."""
STUDIO = "studio"
"""Talking to Label Studio."""
SERIALIZER = JSONSerializer
"""Not RQ's default pickle: what lies in Redis must never be able to run code here."""

RETRY_SECONDS = (2, 5, 15, 30, 60)
JITTER = 0.25
"""Each wait is up to so much shorter or longer, so that jobs that failed together do not all come back at once."""
LONGEST_WAIT = 15 * 60
"""A retry planned for later than that was planned before the clock was set back."""
POLL_SECONDS = 0.2
RESULT_SECONDS = 24 * 3600
FAILED_SECONDS = 30 * 24 * 3600
AGAIN_AFTER = timedelta(minutes=10)
"""A job that failed for good is tried anew after this long, in case its cause has gone."""
BACK_AFTER = timedelta(minutes=1)
"""The same for a job whose only fault was that something did not answer: it tries for as long as that takes."""

ENDED = (JobStatus.FINISHED, JobStatus.FAILED, JobStatus.STOPPED, JobStatus.CANCELED)


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
    retries: tuple[int, ...] = RETRY_SECONDS
    """The waits before each further try, in seconds."""


class TakingQueue(Queue):
    """As a worker sees it. From several queues RQ takes a job into the worker's memory alone, and a worker killed then
    loses it; here it is noted in Redis in the same step, as RQ does it with a single queue."""

    @classmethod
    def lpop(cls, queue_keys: Sequence[str], timeout: int | None, connection: Redis | None = None) -> Any:
        deadline = time.monotonic() + (timeout or 0)
        while True:
            for key in queue_keys:
                taken = cls.lmove(connection, key, None)  # type: ignore[arg-type]
                if taken is not None:
                    return taken
            if timeout is None:
                return None
            if time.monotonic() >= deadline:
                raise DequeueTimeout(timeout, queue_keys)
            time.sleep(POLL_SECONDS)


def queue(redis: Redis, name: str) -> Queue:
    return Queue(name, connection=redis, serializer=SERIALIZER)


def ensure(redis: Redis, work: Work, *, even_if_failed: bool = False) -> bool:
    """Sees to it that the work waits, runs or is to be retried; True if this call enqueued it.

    Finished work of the same id is done again: the caller found in the store that it is due. Failed work rests for a
    while first, so that its reason can be read, unless `even_if_failed`. Nothing can come between the look at the job
    and its replacement: if another process changes it meanwhile, Redis refuses, and we look again.
    """
    found = queue(redis, work.queue)

    def replace(pipe: Pipeline) -> bool:
        if not _may_replace(pipe, found, work.id, even_if_failed):
            return False
        job = found.create_job(
            work.function,
            args=work.arguments,
            job_id=work.id,
            timeout=work.timeout,
            result_ttl=RESULT_SECONDS,
            failure_ttl=FAILED_SECONDS,
            retry=_retry(work),
        )
        pipe.multi()
        _forget(pipe, found, work.id)
        found.enqueue_job(job, pipeline=pipe, at_front=work.first)
        return True

    return bool(redis.transaction(replace, Job.key_for(work.id), value_from_callable=True))  # type: ignore[arg-type]


def enqueue_retries(found: Queue) -> None:
    """Lets jobs whose wait is over try again: what RQ starts a process for, which dies with nobody noticing."""
    later = ScheduledJobRegistry(queue=found)  # type: ignore[no-untyped-call]
    redis = found.connection
    if not redis.zcard(later.key):
        return

    def move(pipe: Pipeline) -> None:
        moment = time.time()
        waits: list[tuple[bytes, float]] = pipe.zrange(later.key, 0, -1, withscores=True)  # type: ignore[assignment]
        over = [name.decode() for name, at in waits if not moment < at < moment + LONGEST_WAIT]
        jobs = {job_id: find(redis, job_id) for job_id in over}
        pipe.multi()
        for job_id, job in jobs.items():
            pipe.zrem(later.key, job_id)
            if job is not None:
                found.enqueue_job(job, pipeline=pipe, at_front=job.enqueue_at_front_on_retry)

    redis.transaction(move, later.key)


def any_waiting(redis: Redis, name: str, *, besides: str = "") -> bool:
    """Whether a job waits for a worker, those of a kind left out; a Redis that is away has none to offer."""
    try:
        return any(not besides or not job_id.endswith(f"-{besides}") for job_id in queue(redis, name).job_ids)
    except (RedisError, OSError):
        return False


def served_here(redis: Redis, job: Job | None) -> list[str]:
    """The queues that the worker serves who runs this job."""
    if job is None or not job.worker_name:
        return []
    served = redis.hget(Worker.redis_worker_namespace_prefix + job.worker_name, "queues")
    return as_text(served).split(",") if served else []


def find(redis: Redis, job_id: str) -> Job | None:
    try:
        return Job.fetch(job_id, connection=redis, serializer=SERIALIZER)
    except NoSuchJobError:
        return None


def reason(job: Job) -> str | None:
    """Why it failed: what the job itself said; one that was killed could not, then RQ's last line tells."""
    told = job.meta.get("reason")
    if told:
        return str(told)
    result = job.latest_result()
    text = (result.exc_string if result else None) or ""
    return text.strip().splitlines()[-1] if text.strip() else None


def is_somewhere(found: Queue, job_id: str, *, taken: bool = True, besides: str | None = None) -> bool:
    """Whether the job is in any of the places that RQ moves it through: waiting, taken, to be retried, running. It
    moves in single steps, so one look at all of them at once cannot miss it; a job that is in none of them was lost.
    A run of it that is over may be left out, and so may that it was taken."""
    with found.connection.pipeline() as look:
        look.lpos(found.key, job_id)
        look.zscore(ScheduledJobRegistry(queue=found).key, job_id)  # type: ignore[no-untyped-call]
        if taken:
            look.lpos(found.intermediate_queue_key, job_id)
        look.zrange(Running(queue=found).key, 0, -1)
        *places, runs = look.execute()
    others = {name.decode() for name in runs} - {besides}
    return any(place is not None for place in places) or any(name.startswith(f"{job_id}:") for name in others)


def long_ago(moment: datetime, after: timedelta) -> bool:
    """Whether a moment lies that far back. One in the future was written before the clock was set back; it counts as
    long ago, for nobody knows, and too soon does less harm than never."""
    return not timedelta(0) <= datetime.now(UTC) - moment < after


def _may_replace(pipe: Pipeline, found: Queue, job_id: str, even_if_failed: bool) -> bool:
    names = ("status", "ended_at", "enqueued_at", "meta")
    status, ended, enqueued, meta = pipe.hmget(Job.key_for(job_id), *names)
    if not status or JobStatus(as_text(status)) == JobStatus.FINISHED:
        return True  # nothing is there, or only what a heartbeat left in an emptied Redis
    if JobStatus(as_text(status)) not in ENDED:
        return not is_somewhere(found, job_id)
    moment = ended or enqueued
    if even_if_failed or not moment:
        return True
    told = json.loads(meta) if meta else {}
    return long_ago(datetime.fromisoformat(as_text(moment)), BACK_AFTER if told.get("away") else AGAIN_AFTER)


def _forget(pipe: Pipeline, found: Queue, job_id: str) -> None:
    """Removes all that is known of an earlier job of this id. RQ's own `delete` fails for a minute after a kill."""
    results = Result.get_key(job_id)  # type: ignore[no-untyped-call]
    pipe.delete(Job.key_for(job_id), results, ExecutionRegistry(job_id, found.connection).key)
    pipe.lrem(found.key, 0, job_id)
    pipe.lrem(found.intermediate_queue_key, 0, job_id)
    for kind in (FinishedJobRegistry, FailedJobRegistry, CanceledJobRegistry, ScheduledJobRegistry):
        pipe.zrem(kind(queue=found).key, job_id)


def _retry(work: Work) -> Retry | None:
    waits = [max(1, round(wait * random.uniform(1 - JITTER, 1 + JITTER))) for wait in work.retries]  # noqa: S311
    return Retry(max=len(waits), interval=waits, enqueue_at_front=work.first) if waits else None
