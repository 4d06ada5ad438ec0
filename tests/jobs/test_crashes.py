"""Redis killed, emptied or refusing while workers work: the workers stay, and each job is done."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import RedisError
from rq.job import JobStatus

from backend.embedded.process import Process, Stack
from backend.embedded.redis import start_redis
from jobs import queues
from jobs import workplace as workplaces
from jobs.loop import advance
from jobs.queues import STUDIO, Work
from jobs.settings import Settings
from jobs.status import queue_status
from jobs.workplace import Workplace
from store import database, projects
from store.database import Store
from tests.conftest import make_project
from tests.jobs.test_queues import run_all
from tests.jobs.workers import Workers, is_alive, kill, wait_for

HELD = Work(id="project-1-round-0-publish", function="tests.jobs.work.hold", arguments=(15,), queue=STUDIO)


@dataclass
class OwnRedis:
    """A Redis that a test may kill."""

    process: Process
    url: str

    def kill(self) -> None:
        assert self.process.pid is not None
        kill([self.process.pid])
        wait_for(lambda: not self.process.running, "its death")

    def start(self) -> None:
        self.process.stop()
        self.process.start()
        wait_for(lambda: _answers(self.url), "its answer")


def _answers(url: str) -> bool:
    try:
        return bool(Redis.from_url(url).ping())
    except RedisError:
        return False


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[OwnRedis]:
    settings = Settings.from_env({"IWES_HOME": str(tmp_path / "redis-home")})
    with Stack() as stack:
        yield OwnRedis(start_redis(stack, settings), settings.redis_url)


@pytest.fixture
def shaky(own_redis: OwnRedis, settings: Settings, store: Store) -> Workplace:
    return Workplace(replace(settings, redis_url=own_redis.url), store)


@pytest.fixture
def workers(shaky: Workplace, tmp_path: Path) -> Iterator[Workers]:
    with Workers(shaky.settings, tmp_path / "diary", tmp_path / "worker.log") as workers:
        yield workers


def status(place: Workplace) -> JobStatus | None:
    job = queues.find(place.redis, HELD.id)
    return job.get_status(refresh=False) if job else None


def test_a_job_that_finds_the_store_locked_is_tried_again_for_as_long_as_it_takes(
    shaky: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not shaky.store.is_sqlite:
        pytest.skip("a job of PostgreSQL's waits for a row, not for the whole store")
    project = make_project(shaky.store)
    work = Work(
        f"project-{project.id}-round-0-publish", "tests.jobs.observed.write", (project.id, 0), STUDIO, retries=()
    )
    for name, value in replace(shaky.settings, redis_is_embedded=False).as_env().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(workplaces, "open_store", partial(database.open_store, busy_seconds=0.1))
    monkeypatch.setattr(queues, "BACK_AFTER", timedelta())
    for _ in range(2):
        with shaky.store.write() as session:
            projects.lock(session, project.id)
            assert queues.ensure(shaky.redis, work)
            run_all(shaky, STUDIO)
        (told,) = queue_status(shaky.redis).jobs
        assert (told.state, told.reason) == (
            "failed",
            "OperationalError: (sqlite3.OperationalError) database is locked",
        )
    assert queues.ensure(shaky.redis, work)
    run_all(shaky, STUDIO)
    job = queues.find(shaky.redis, work.id)
    assert job is not None
    assert job.get_status() == JobStatus.FINISHED


@pytest.mark.slow
def test_a_redis_killed_in_the_middle_of_a_job_costs_neither_the_job_nor_the_worker(
    shaky: Workplace, own_redis: OwnRedis, workers: Workers
) -> None:
    queues.ensure(shaky.redis, HELD)
    worker = workers.hire()
    run = workers.await_run(1)
    own_redis.kill()
    time.sleep(6)  # long enough for a sign of life to find nobody
    assert is_alive(run.horse)
    own_redis.start()
    wait_for(lambda: status(shaky) == JobStatus.FINISHED, "its end")
    assert len(workers.runs()) == 1
    assert worker.poll() is None


@pytest.mark.slow
def test_a_redis_that_is_away_when_a_job_ends_has_it_done_again_by_the_same_worker(
    shaky: Workplace, own_redis: OwnRedis, workers: Workers
) -> None:
    """What was done is in the store, so that the second time is a short one."""
    queues.ensure(shaky.redis, replace(HELD, arguments=(3,)))
    worker = workers.hire()
    run = workers.await_run(1)
    own_redis.kill()
    wait_for(lambda: not is_alive(run.horse), "the job's own end")
    own_redis.start()
    again = workers.await_run(2)
    assert again.worker == run.worker == worker.pid
    wait_for(lambda: status(shaky) == JobStatus.FINISHED, "its end")
    assert queue_status(shaky.redis).workers == 1


@pytest.mark.slow
def test_a_redis_emptied_in_the_middle_of_a_job_is_told_again_who_does_what(shaky: Workplace, workers: Workers) -> None:
    queues.ensure(shaky.redis, HELD)
    workers.hire()
    workers.await_run(1)
    workers.hire()
    wait_for(lambda: queue_status(shaky.redis).workers == 2, "the second worker")
    shaky.redis.flushall()
    wait_for(lambda: status(shaky) == JobStatus.STARTED and queue_status(shaky.redis).workers == 2, "both to report")
    assert not queues.ensure(shaky.redis, HELD), "it is being done"
    wait_for(lambda: status(shaky) == JobStatus.FINISHED, "its end")
    assert len(workers.runs()) == 1, "no other worker has begun it as well"


@pytest.mark.slow
def test_a_redis_that_takes_nothing_in_is_waited_for(shaky: Workplace, own_redis: OwnRedis, workers: Workers) -> None:
    worker = workers.hire()
    wait_for(lambda: queue_status(shaky.redis).workers == 1, "the worker")
    shaky.redis.config_set("maxmemory", "1")
    wait_for(lambda: "Redis is away or refuses" in workers.log.read_text(), "the worker to notice")
    project = make_project(shaky.store, tasks=3)
    assert advance(shaky, project.id) == [f"project-{project.id}-round-0-draw"], "what is due stays due"
    shaky.redis.config_set("maxmemory", "0")
    wait_for(lambda: bool(queues.queue(shaky.redis, queues.GPU).job_ids), "the tick to enqueue what is due")
    queues.ensure(shaky.redis, HELD)
    assert workers.await_run(1).worker == worker.pid
    own_redis.kill()
    late = workers.hire()
    time.sleep(2)
    assert late.poll() is None, "one that is started while Redis is down waits for it"
    own_redis.start()
    wait_for(lambda: queue_status(shaky.redis).workers == 2, "both workers")
