"""The worker: RQ's own, quick to notice a dead colleague, with a tick that keeps the loop going."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType
from typing import Any

from redis import Redis
from redis.client import Pipeline
from redis.exceptions import RedisError
from rq import Queue, Worker, worker_registration
from rq.job import Job
from rq.registry import clean_registries
from sqlalchemy.exc import SQLAlchemyError

from jobs import logs, measures, queues
from jobs.given_up import end_failed_training
from jobs.horse import dies_with_its_worker, how_it_ended
from jobs.loop import advance, reconcile_work
from jobs.queues import GPU, STUDIO, TakingQueue
from jobs.settings import Settings
from jobs.takeover import Lookout, put_back
from jobs.workplace import workplace
from models import durable
from store import projects

log = logging.getLogger(__name__)

BEAT_SECONDS = 2
"""How long an idle worker waits for a job before it looks around."""
TICK_SECONDS = 10
MONITOR_SECONDS = 5
"""How often a busy one gives a sign of life and looks around."""
WORKER_SECONDS = 25
"""A worker not heard of for so long is not counted any more."""
STOP_SECONDS = 3
"""What a job may still take when its worker is told to stop; then it is put back. Whoever told it kills after 10 s."""
AWAY_SECONDS = 5.0
"""The longest wait between two looks whether Redis is back."""
RUN_SECONDS = 365 * 24 * 3600
"""When RQ would take a silent run for dead, by comparing clocks: never. `Lookout` finds it, and far sooner."""


class LoopWorker(Worker):
    """Between jobs it looks around every `BEAT_SECONDS`, and every `TICK_SECONDS` it enqueues whatever is due and not
    enqueued (Redis was flushed, a process died between two steps).

    Ways of RQ's that it leaves: a process for retries and a thread for commands, which outlive a killed worker or wedge
    when Redis is away; a lock around the care of registries, which a killed worker holds for 15 minutes; and the wall
    clock, which can be set, as the measure of how long ago something was.
    """

    settings: Settings
    queue_class = TakingQueue
    max_connection_wait_time = AWAY_SECONDS

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.told_to_stop: float | None = None
        self._lookout = Lookout()
        self._looked = self._ticked = float("-inf")
        self._began = 0.0
        self._puts_back = False

    @property
    def dequeue_timeout(self) -> int:
        return BEAT_SECONDS

    @property
    def should_run_maintenance_tasks(self) -> bool:
        return time.monotonic() - self._looked >= BEAT_SECONDS

    def run_maintenance_tasks(self) -> None:
        self._look_around()
        first = self._ticked == float("-inf")
        if time.monotonic() - self._ticked < TICK_SECONDS:
            return
        self._ticked = time.monotonic()
        self.clean_registries()
        try:
            tick(self.settings, self.connection, reconcile_all=first)
        except (SQLAlchemyError, RedisError, OSError):
            log.exception("the tick failed; the next one is in %s seconds", TICK_SECONDS)

    def clean_registries(self) -> None:
        for queue in self.queues:
            clean_registries(queue)
            worker_registration.clean_worker_registry(queue)

    def subscribe(self) -> None:
        """Nobody gives a worker commands through Redis."""

    def heartbeat(self, timeout: int | None = None, pipeline: Pipeline | None = None) -> None:
        try:
            super().heartbeat(WORKER_SECONDS, pipeline=pipeline)
        except RedisError:
            self._lookout.forget()
            raise

    def get_heartbeat_ttl(self, job: Job) -> int:
        return RUN_SECONDS

    def execute_job(self, job: Job, queue: Queue) -> None:
        self._began = time.monotonic()
        with logs.about(**logs.of_job(job.id)):
            super().execute_job(job, queue)

    def main_work_horse(self, job: Job, queue: Queue) -> None:
        dies_with_its_worker(self.pid)
        super().main_work_horse(job, queue)

    def prepare_job_execution(self, job: Job, remove_from_intermediate_queue: bool = True) -> None:
        super().prepare_job_execution(job, remove_from_intermediate_queue=True)

    def set_current_job_working_time(self, current_job_working_time: float, pipeline: Pipeline | None = None) -> None:
        """RQ kills a job that has worked for too long; how long is told by a clock that nobody sets."""
        worked = min(current_job_working_time, time.monotonic() - self._began)
        self.current_job_working_time = worked
        with _while_redis_is_away("the time worked"):
            super().set_current_job_working_time(worked, pipeline=pipeline)

    def maintain_heartbeats(self, job: Job) -> None:
        """While a job runs. A Redis that is away costs a sign of life, not the job."""
        if self.told_to_stop is not None and time.monotonic() - self.told_to_stop >= STOP_SECONDS:
            log.info("%s is put back: its worker was told to stop", job.id)
            self._puts_back = True
            self.kill_horse()
            return
        with _while_redis_is_away("a sign of life"):
            self._hold(job)
            super().maintain_heartbeats(job)
            self._look_around()

    def request_stop(self, signum: int, frame: FrameType | None) -> None:
        self.told_to_stop = time.monotonic()
        self.job_monitoring_interval = 1
        with _while_redis_is_away("a wish to stop"):
            super().request_stop(signum, frame)  # type: ignore[no-untyped-call]

    def handle_work_horse_killed(self, job: Job, retpid: int, ret_val: int | None, rusage: object) -> None:
        if self._puts_back:
            return
        super().handle_work_horse_killed(job, retpid, ret_val, rusage)  # type: ignore[no-untyped-call]
        _count_killed(self.connection, job)
        job.get_meta(refresh=True)
        job.meta |= {"reason": how_it_ended(ret_val), "away": False}
        job.save_meta()  # type: ignore[no-untyped-call]

    def handle_job_failure(
        self, job: Job, queue: Queue, started_job_registry: Any = None, exc_string: str = ""
    ) -> None:
        if self._puts_back and self.execution is not None:
            put_back(queue, job.id, run=self.execution.composite_key)
        else:
            super().handle_job_failure(job, queue, started_job_registry, exc_string)

    def _look_around(self) -> None:
        self._looked = time.monotonic()
        try:
            self._register()
            for queue in self.queues:
                queues.enqueue_retries(queue)
                for job in self._lookout.look(queue):
                    log.warning("the worker of %s vanished; the job is put back", job.id)
                    _count_killed(self.connection, job)
        except RedisError:
            self._lookout.forget()
            raise

    def _register(self) -> None:
        """Again and again: a Redis that was emptied, or was away for long, has forgotten us."""
        with self.connection.pipeline() as pipe:
            pipe.hset(self.key, mapping=self.serialize())
            worker_registration.register(self, pipe)
            self.heartbeat(pipeline=pipe)
            pipe.execute()

    def _hold(self, job: Job) -> None:
        """Tells a Redis that was emptied that this job is being done, lest another worker begins it too."""
        run = self.execution

        def tell(pipe: Pipeline) -> None:
            known = pipe.hexists(job.key, "status")
            pipe.multi()
            if not known and run is not None:
                job.save(pipeline=pipe)
                job.prepare_for_execution(self.name, pipeline=pipe)
                run.save(RUN_SECONDS, pipeline=pipe)
                job.started_job_registry.add_execution(run, pipeline=pipe, ttl=RUN_SECONDS)

        self.connection.transaction(tell, job.key)


def tick(settings: Settings, redis: Redis, *, reconcile_all: bool = False) -> None:
    every = timedelta(seconds=settings.reconcile_seconds)
    with workplace(settings) as place:
        with place.store.read() as session:
            connected = projects.connected(session)
        for project in connected:
            with logs.about(project=project.id):
                end_failed_training(place, project.id)
                advance(place, project.id)
                seen = project.reconciled_at
                if reconcile_all or seen is None or queues.long_ago(seen, every):
                    queues.ensure(redis, reconcile_work(project), even_if_failed=reconcile_all)


def run(settings: Settings, names: Sequence[str] = (STUDIO, GPU), *, burst: bool = False) -> None:
    """Works until stopped; a Redis that is away is waited for. Where models are trained, torch is imported before the
    first fork, so that no job has to."""
    logs.set_up(settings.log)
    if GPU in names:
        import models.training  # noqa: F401 - for its import alone

        durable.clear(settings.models_folder)
    LoopWorker.settings = settings
    while not _worked(settings, names, burst=burst):
        time.sleep(AWAY_SECONDS)


def _worked(settings: Settings, names: Sequence[str], *, burst: bool) -> bool:
    """Works until told to stop, and says whether that was why it ended, and not Redis."""
    redis = Redis.from_url(settings.redis_url)
    worker = None
    try:
        worker = LoopWorker(
            list(names),
            connection=redis,
            serializer=queues.SERIALIZER,
            worker_ttl=WORKER_SECONDS,
            job_monitoring_interval=MONITOR_SECONDS,
        )
        worker.work(burst=burst, logging_level="INFO")
    except RedisError as error:
        log.warning("Redis is away or refuses (%s); looked for again in %s seconds", error, AWAY_SECONDS)
    finally:
        for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
            signal.signal(number, handler)
        redis.close()
    return burst or (worker is not None and worker.told_to_stop is not None)


@contextmanager
def _while_redis_is_away(what: str) -> Iterator[None]:
    try:
        yield
    except (RedisError, OSError) as error:
        log.warning("%s is lost, Redis is away or refuses: %s", what, error)


def _count_killed(redis: Redis, job: Job) -> None:
    measures.count_job(redis, str(job.func_name).rpartition(".")[2], "killed")
