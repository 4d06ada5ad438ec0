"""How many jobs wait, run, are to be retried and have failed, and who is there to do them.

Only looked at: RQ's own counts put abandoned jobs back into their queues on the way, which is the workers' to do.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from redis import Redis
from rq.registry import FailedJobRegistry, ScheduledJobRegistry, StartedJobRegistry
from rq.worker_registration import WORKERS_BY_QUEUE_KEY

from jobs import queues
from jobs.queues import FAILED_SECONDS, GPU, STUDIO

LATELY_SECONDS = 24 * 3600


@dataclass(frozen=True)
class Backlog:
    """Of one queue."""

    waiting: int
    started: int
    scheduled: int
    """Failed before, to be retried later."""
    failed: int
    """For good, within the time for which RQ keeps them."""
    failed_lately: int
    """Within a day: older ones may long have been made good by others."""
    workers: int
    """Alive: heard of lately."""


def backlogs(redis: Redis) -> dict[str, Backlog]:
    """By queue, in two round trips; raises RedisError or OSError."""
    since = time.time() + FAILED_SECONDS - LATELY_SECONDS  # failed jobs are listed by when they are forgotten
    found = [queues.queue(redis, name) for name in (STUDIO, GPU)]
    with redis.pipeline(transaction=False) as pipe:
        for queue in found:
            pipe.llen(queue.key)
            for registry in (
                StartedJobRegistry(queue=queue),
                ScheduledJobRegistry(queue=queue),  # type: ignore[no-untyped-call]
                FailedJobRegistry(queue=queue),
            ):
                pipe.zcard(registry.key)
            pipe.zcount(registry.key, since, "+inf")
            pipe.smembers(WORKERS_BY_QUEUE_KEY % queue.name)
        answers = pipe.execute()
        rows = [answers[start : start + 6] for start in range(0, len(answers), 6)]
        names = sorted({name for row in rows for name in row[-1]})
        for name in names:
            pipe.exists(name)  # a worker's entry goes with its heartbeat
        alive = {name for name, exists in zip(names, pipe.execute(), strict=True) if exists}
    return {
        queue.name: Backlog(waiting, started, scheduled, failed, lately, len(workers & alive))
        for queue, (waiting, started, scheduled, failed, lately, workers) in zip(found, rows, strict=True)
    }
