"""A job outlives whoever does it: its process, its worker, both at once, on a real Redis with real workers."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis
from rq.job import JobStatus
from rq.registry import FailedJobRegistry, StartedJobRegistry

from jobs import queues, takeover
from jobs.queues import GPU, STUDIO, Work
from jobs.status import queue_status
from jobs.takeover import Lookout, put_back
from jobs.worker import LoopWorker
from jobs.workplace import Workplace
from tests.jobs.workers import Workers, begin, is_alive, kill, wait_for

LONG = Work(id="project-1-round-0-publish", function="tests.jobs.work.hold", arguments=(300,), queue=STUDIO)


@pytest.fixture
def workers(busy: Workplace, tmp_path: Path) -> Iterator[Workers]:
    with Workers(busy.settings, tmp_path / "diary", tmp_path / "worker.log") as workers:
        yield workers


def status(redis: Redis, job_id: str = LONG.id) -> JobStatus:
    job = queues.find(redis, job_id)
    assert job is not None
    return job.get_status()


def tries_left(redis: Redis) -> int:
    job = queues.find(redis, LONG.id)
    assert job is not None
    return job.retries_left or 0


@pytest.mark.slow
def test_a_job_whose_worker_and_process_were_killed_is_taken_over_by_another_worker(
    busy: Workplace, workers: Workers
) -> None:
    queues.ensure(busy.redis, LONG)
    workers.hire()
    first = workers.await_run(1)
    other = workers.hire()
    wait_for(lambda: queue_status(busy.redis).workers == 2, "the second worker")
    kill([first.worker, first.horse])
    killed = time.monotonic()
    second = workers.await_run(2)
    print(f"\ntaken over {second.began - killed:.1f} s after both were killed")
    assert second.worker == other.pid != first.worker
    assert second.began - killed < 90, "the promise"
    wait_for(lambda: status(busy.redis) == JobStatus.FINISHED, "its end")
    assert tries_left(busy.redis) == len(LONG.retries), "none of its own tries is used up by a worker's death"


@pytest.mark.slow
def test_a_worker_that_is_killed_alone_takes_its_process_along_and_its_successor_does_the_job(
    busy: Workplace, workers: Workers
) -> None:
    queues.ensure(busy.redis, LONG)
    workers.hire(STUDIO, GPU)
    first = workers.await_run(1)
    kill([first.worker])
    wait_for(lambda: not is_alive(first.horse), "the process that did the job")
    successor = workers.hire(STUDIO, GPU)
    killed = time.monotonic()
    second = workers.await_run(2)
    print(f"\ntaken over {second.began - killed:.1f} s after the only worker was killed and started again")
    assert second.worker == successor.pid
    wait_for(lambda: status(busy.redis) == JobStatus.FINISHED, "its end")


@pytest.mark.slow
def test_a_job_whose_process_alone_was_killed_is_retried_within_its_budget(busy: Workplace, workers: Workers) -> None:
    queues.ensure(busy.redis, LONG)
    workers.hire()
    first = workers.await_run(1)
    kill([first.horse])
    wait_for(lambda: status(busy.redis) == JobStatus.SCHEDULED, "its turn")
    (told,) = queue_status(busy.redis).jobs
    assert told.state == "to be retried"
    assert "ended by SIGKILL; the machine may be short of memory" in str(told.reason)
    second = workers.await_run(2)
    assert second.worker == first.worker
    assert tries_left(busy.redis) == len(LONG.retries) - 1


@pytest.mark.slow
def test_a_worker_that_is_told_to_stop_puts_its_job_back_at_once(busy: Workplace, workers: Workers) -> None:
    queues.ensure(busy.redis, LONG)
    worker = workers.hire()
    first = workers.await_run(1)
    os.kill(first.worker, signal.SIGTERM)
    assert worker.wait(timeout=9.5) == 0, "those who stop it kill it after ten seconds"
    assert not is_alive(first.horse)
    assert queues.queue(busy.redis, STUDIO).job_ids == [LONG.id]
    assert tries_left(busy.redis) == len(LONG.retries)
    assert queue_status(busy.redis).workers == 0
    workers.hire()
    workers.await_run(2)
    wait_for(lambda: status(busy.redis) == JobStatus.FINISHED, "its end")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (9, "its process was ended by SIGKILL; the machine may be short of memory"),
        (11, "its process was ended by SIGSEGV"),
        (256, "its process ended with code 1 and without a word"),
        (None, "it took longer than it may, and was killed"),
    ],
)
def test_a_process_that_ended_without_a_word_is_spoken_for(busy: Workplace, status: int | None, said: str) -> None:
    queues.ensure(busy.redis, LONG)
    job = queues.find(busy.redis, LONG.id)
    assert job is not None
    worker = LoopWorker([STUDIO], connection=busy.redis, serializer=queues.SERIALIZER)
    worker.handle_work_horse_killed(job, 1, status, None)
    told = queues.find(busy.redis, LONG.id)
    assert told is not None
    assert queues.reason(told) == said


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that two looks are enough."""
    monkeypatch.setattr(takeover, "SILENT_SECONDS", 0.0)


@pytest.mark.usefixtures("quick")
def test_a_job_that_was_taken_from_its_queue_and_never_begun_is_put_back(busy: Workplace) -> None:
    queues.ensure(busy.redis, LONG)
    found = queues.queue(busy.redis, STUDIO)
    assert LoopWorker.queue_class.lpop([found.key, "rq:queue:gpu"], None, busy.redis)
    assert found.job_ids == []
    (job,) = Lookout().look(found)
    assert (job.id, found.job_ids) == (LONG.id, [LONG.id])
    assert busy.redis.llen(found.intermediate_queue_key) == 0


def test_a_run_that_gives_signs_of_life_is_left_alone(busy: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    queues.ensure(busy.redis, LONG)
    found, run = begin(busy.redis, STUDIO)
    lookout, beats = Lookout(), StartedJobRegistry(queue=found).key
    monkeypatch.setattr(takeover, "SILENT_SECONDS", 0.02)
    assert lookout.look(found) == []
    for _ in range(3):
        time.sleep(0.03)
        busy.redis.zincrby(beats, 1, run)
        assert lookout.look(found) == []
    time.sleep(0.03)
    assert [job.id for job in lookout.look(found)] == [LONG.id]


@pytest.mark.parametrize("how", ["it did not look", "Redis was away"])
def test_who_could_not_look_for_a_while_begins_to_count_anew(
    busy: Workplace, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    queues.ensure(busy.redis, LONG)
    found, _run = begin(busy.redis, STUDIO)
    lookout = Lookout()
    monkeypatch.setattr(takeover, "SILENT_SECONDS", 0.02)
    monkeypatch.setattr(takeover, "GAP_SECONDS", 0.01 if how == "it did not look" else 10)
    for _ in range(3):
        assert lookout.look(found) == []
        time.sleep(0.03)
        if how == "Redis was away":
            lookout.forget()


@pytest.mark.usefixtures("quick")
def test_a_run_that_ended_or_went_on_meanwhile_is_not_begun_again(busy: Workplace) -> None:
    queues.ensure(busy.redis, LONG)
    found, run = begin(busy.redis, STUDIO)
    assert put_back(found, LONG.id, run=run, beat=1.0) is None, "its last sign of life is another one"
    assert len(StartedJobRegistry(queue=found)) == 1
    job = queues.find(busy.redis, LONG.id)
    assert job is not None
    job.set_status(JobStatus.FINISHED)
    assert Lookout().look(found) == []
    assert found.job_ids == []
    assert len(StartedJobRegistry(queue=found)) == 0


@pytest.mark.usefixtures("quick")
def test_a_job_that_fells_worker_after_worker_counts_as_failed_in_the_end(busy: Workplace) -> None:
    queues.ensure(busy.redis, LONG)
    for _ in range(takeover.MOST_TAKEOVERS):
        found, _run = begin(busy.redis, STUDIO)
        assert Lookout().look(found)
    found, _run = begin(busy.redis, STUDIO)
    assert Lookout().look(found)
    assert found.job_ids == []
    assert FailedJobRegistry(queue=found).get_job_ids() == [LONG.id]
    (told,) = queue_status(busy.redis).jobs
    assert (told.state, told.reason) == ("failed", "its worker vanished in the middle of it")
