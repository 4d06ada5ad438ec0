"""The worker: RQ's own, quick to notice a dead colleague, with a tick that keeps the loop going."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta

from redis import Redis
from redis.exceptions import RedisError
from rq import Worker
from sqlalchemy.exc import SQLAlchemyError

from jobs import queues
from jobs.loop import advance, reconcile_work
from jobs.queues import GPU, STUDIO
from jobs.settings import Settings
from jobs.workplace import workplace
from store import projects
from store.tables import now

log = logging.getLogger(__name__)

TICK_SECONDS = 10
WORKER_SECONDS = 25
"""A worker not heard of for so long counts as dead. RQ waits for a job 15 s less than this, then ticks."""
MONITOR_SECONDS = 5


class LoopWorker(Worker):
    """RQ calls `run_maintenance_tasks` at the start and every `TICK_SECONDS` between jobs. Whatever is due and not
    enqueued (Redis was flushed, a process died between two steps) is enqueued there."""

    settings: Settings
    _ticked = False

    def run_maintenance_tasks(self) -> None:
        super().run_maintenance_tasks()  # type: ignore[no-untyped-call]
        try:
            tick(self.settings, self.connection, reconcile_all=not self._ticked)
            self._ticked = True
        except (SQLAlchemyError, RedisError, OSError):
            log.exception("the tick failed; the next one is in %s seconds", TICK_SECONDS)


def tick(settings: Settings, redis: Redis, *, reconcile_all: bool = False) -> None:
    every = timedelta(seconds=settings.reconcile_seconds)
    with workplace(settings) as place:
        with place.store.read() as session:
            connected = projects.connected(session)
        for project in connected:
            advance(place, project.id)
            seen = project.reconciled_at
            if reconcile_all or seen is None or now() - seen > every:
                queues.ensure(redis, reconcile_work(project), even_if_failed=True)


def run(settings: Settings, names: Sequence[str] = (STUDIO, GPU), *, burst: bool = False) -> None:
    """Works until stopped. Where models are trained, torch is imported before the first fork, so that no job has to."""
    if GPU in names:
        import models.training  # noqa: F401 - for its import alone

    redis = Redis.from_url(settings.redis_url)
    LoopWorker.settings = settings
    worker = LoopWorker(
        [queues.queue(redis, name) for name in names],
        connection=redis,
        serializer=queues.SERIALIZER,
        maintenance_interval=TICK_SECONDS,
        worker_ttl=WORKER_SECONDS,
        job_monitoring_interval=MONITOR_SECONDS,
    )
    worker.work(burst=burst, with_scheduler=True, logging_level="INFO")
