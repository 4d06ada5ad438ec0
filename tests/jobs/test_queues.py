"""A piece of work gets into the queue once, whoever asks and however often, on a real Redis with a real worker."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from redis import Redis
from rq import SimpleWorker
from rq.job import JobStatus
from rq.registry import ScheduledJobRegistry, StartedJobRegistry

from jobs import queues
from jobs.queues import GPU, Work
from jobs.status import queue_status
from jobs.workplace import Workplace
from tests.jobs.workers import begin

WORK = Work(id="project-1-round-0-train", function="tests.jobs.work.count", arguments=(1,), queue=GPU, retries=())


def run_all(place: Workplace, name: str = GPU) -> None:
    found = queues.queue(place.redis, name)
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
    monkeypatch.setattr(queues, "AGAIN_AFTER", timedelta())
    assert queues.ensure(busy.redis, WORK)


@pytest.mark.parametrize("ended", ["count", "fail"])
def test_a_job_that_another_process_has_just_begun_anew_is_not_replaced(
    busy: Workplace, monkeypatch: pytest.MonkeyPatch, ended: str
) -> None:
    """Between our look at the ended job and its replacement, another process enqueues it and a worker begins it."""
    queues.ensure(busy.redis, replace(WORK, function=f"tests.jobs.work.{ended}"))
    run_all(busy)
    look, other = queues._may_replace, Redis.from_url(busy.settings.redis_url)

    def overtaken(*arguments: Any) -> bool:
        answer = look(*arguments)
        monkeypatch.setattr(queues, "_may_replace", look)
        assert queues.ensure(other, WORK, even_if_failed=True)
        begin(other, GPU)
        return answer

    monkeypatch.setattr(queues, "_may_replace", overtaken)
    assert not queues.ensure(busy.redis, WORK, even_if_failed=True)
    assert queues.queue(busy.redis, GPU).job_ids == []
    assert StartedJobRegistry(queue=queues.queue(busy.redis, GPU)).get_job_ids() == [WORK.id]
    job = queues.find(busy.redis, WORK.id)
    assert job is not None
    assert job.get_status() == JobStatus.STARTED


@pytest.mark.parametrize("place", ["queue", "taken", "later", "running"])
def test_work_that_is_in_any_of_its_places_is_not_enqueued_again(busy: Workplace, place: str) -> None:
    queues.ensure(busy.redis, WORK)
    found = queues.queue(busy.redis, GPU)
    if place == "taken":
        busy.redis.lmove(found.key, found.intermediate_queue_key)
    elif place == "later":
        job = found.fetch_job(WORK.id)
        assert job is not None
        busy.redis.delete(found.key)
        found.schedule_job(job, datetime.now(UTC) + timedelta(seconds=30))
    elif place == "running":
        begin(busy.redis, GPU)
    assert not queues.ensure(busy.redis, WORK)


def test_work_that_redis_believes_in_but_has_lost_is_enqueued_again(busy: Workplace) -> None:
    queues.ensure(busy.redis, WORK)
    busy.redis.delete(queues.queue(busy.redis, GPU).key)
    assert queues.ensure(busy.redis, WORK)
    assert queues.queue(busy.redis, GPU).job_ids == [WORK.id]


def test_a_heartbeat_left_in_an_emptied_redis_keeps_no_work_from_being_done(busy: Workplace) -> None:
    busy.redis.hset(f"rq:job:{WORK.id}", "last_heartbeat", "2026-01-01T00:00:00.000000Z")
    assert queues.ensure(busy.redis, WORK)
    run_all(busy)
    job = queues.find(busy.redis, WORK.id)
    assert job is not None
    assert job.get_status() == JobStatus.FINISHED


def test_a_job_killed_a_moment_ago_can_be_replaced(busy: Workplace) -> None:
    """RQ still lists a run whose own entry is gone, and cannot delete a job of which that is so."""
    queues.ensure(busy.redis, WORK)
    found, run = begin(busy.redis, GPU)
    busy.redis.delete(f"rq:execution:{run}")
    busy.redis.zrem(StartedJobRegistry(queue=found).key, run)
    assert queues.ensure(busy.redis, WORK)


def test_waits_between_tries_grow_and_are_never_the_same_for_all(busy: Workplace) -> None:
    seen = set()
    for number in range(20):
        work = replace(WORK, id=f"project-{number}-round-0-publish", retries=queues.RETRY_SECONDS)
        queues.ensure(busy.redis, work)
        job = queues.find(busy.redis, work.id)
        assert job is not None
        waits = job.retry_intervals or []
        assert job.retries_left == len(waits) == len(queues.RETRY_SECONDS)
        assert all(
            0.7 * plain <= wait <= 1.3 * plain or wait == 1 for wait, plain in zip(waits, work.retries, strict=True)
        )
        assert waits == sorted(waits)
        seen.add(tuple(waits))
    assert len(seen) > 10


def test_a_job_is_tried_as_often_as_its_budget_allows_and_then_tells_its_reason(busy: Workplace) -> None:
    queues.ensure(busy.redis, replace(WORK, function="tests.jobs.work.fail", retries=(300, 300)))
    found = queues.queue(busy.redis, GPU)
    for left in (1, 0):
        run_all(busy)
        job = queues.find(busy.redis, WORK.id)
        assert job is not None
        assert (job.get_status(), job.retries_left) == (JobStatus.SCHEDULED, left)
        later = ScheduledJobRegistry(queue=found)
        queues.enqueue_retries(found)
        assert found.job_ids == [], "its wait is not over"
        busy.redis.zadd(later.key, {WORK.id: 1})
        queues.enqueue_retries(found)
        queues.enqueue_retries(found)
        assert (found.job_ids, len(later)) == ([WORK.id], 0)
    run_all(busy)
    (told,) = queue_status(busy.redis).jobs
    assert (told.state, told.reason) == ("failed", "ValueError: 1 cannot be done")
    assert not queues.ensure(busy.redis, WORK)


def test_work_whose_only_fault_was_that_something_did_not_answer_rests_a_minute_at_most(
    busy: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "BACK_AFTER", timedelta())
    queues.ensure(busy.redis, replace(WORK, function="tests.jobs.work.fail"))
    run_all(busy)
    assert not queues.ensure(busy.redis, WORK)
    job = queues.find(busy.redis, WORK.id)
    assert job is not None
    job.meta["away"] = True
    job.save_meta()
    assert queues.ensure(busy.redis, WORK)


def test_nothing_in_redis_is_a_pickle(busy: Workplace) -> None:
    """What lies in Redis is data: whoever could write there must not be able to run code here."""
    queues.ensure(busy.redis, WORK)
    import zlib

    stored = busy.redis.hget(f"rq:job:{WORK.id}", "data")
    assert isinstance(stored, bytes)
    assert zlib.decompress(stored).startswith(b"[")
