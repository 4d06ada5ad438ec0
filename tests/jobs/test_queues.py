"""A piece of work gets into the queue once, whoever asks and however often, on a real Redis with a real worker."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from rq import SimpleWorker
from rq.job import JobStatus

from jobs import queues
from jobs.queues import GPU, Work
from jobs.workplace import Workplace

WORK = Work(id="project-1-round-0-train", function="tests.jobs.work.count", arguments=(1,), queue=GPU, retries=())


def run_all(place: Workplace) -> None:
    found = queues.queue(place.redis, GPU)
    SimpleWorker([found], connection=place.redis, serializer=queues.SERIALIZER).work(burst=True)


def test_work_asked_for_by_many_at_once_is_enqueued_once(busy: Workplace) -> None:
    enqueued: list[bool] = []
    ready = threading.Barrier(12)

    def ask() -> None:
        ready.wait()
        enqueued.append(queues.ensure(busy.redis, WORK))

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(enqueued) == 1
    assert queues.queue(busy.redis, GPU).job_ids == [WORK.id]


def test_finished_work_that_is_due_again_is_done_again(busy: Workplace) -> None:
    queues.ensure(busy.redis, WORK)
    run_all(busy)
    job = queues.find(busy.redis, WORK.id)
    assert job is not None
    assert job.get_status() == JobStatus.FINISHED
    assert queues.ensure(busy.redis, WORK)
    assert queues.queue(busy.redis, GPU).job_ids == [WORK.id]


def test_failed_work_rests_unless_somebody_insists(busy: Workplace) -> None:
    failing = replace(WORK, function="tests.jobs.work.fail")
    queues.ensure(busy.redis, failing)
    run_all(busy)
    job = queues.find(busy.redis, WORK.id)
    assert job is not None
    assert job.get_status() == JobStatus.FAILED
    assert not queues.ensure(busy.redis, WORK)
    assert queues.ensure(busy.redis, WORK, even_if_failed=True)


def test_failed_work_is_tried_anew_after_its_rest(busy: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    queues.ensure(busy.redis, replace(WORK, function="tests.jobs.work.fail"))
    run_all(busy)
    monkeypatch.setattr(queues, "AGAIN_AFTER", -queues.AGAIN_AFTER)
    assert queues.ensure(busy.redis, WORK)


def test_nothing_in_redis_is_a_pickle(busy: Workplace) -> None:
    """What lies in Redis is data: whoever could write there must not be able to run code here."""
    queues.ensure(busy.redis, WORK)
    import zlib

    stored = busy.redis.hget(f"rq:job:{WORK.id}", "data")
    assert isinstance(stored, bytes)
    assert zlib.decompress(stored).startswith(b"[")
