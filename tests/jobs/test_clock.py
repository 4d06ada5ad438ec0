"""A wall clock that is set back or forward by hours, between any two events, stops nothing and doubles nothing."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from rq import registry
from rq.job import JobStatus
from rq.registry import ScheduledJobRegistry, StartedJobRegistry
from rq.utils import current_timestamp

from jobs import queues, takeover
from jobs.queues import GPU, STUDIO, Work
from jobs.takeover import Lookout
from jobs.worker import LoopWorker, tick
from jobs.workplace import Workplace
from store import projects
from store.tables import now
from tests.conftest import make_project
from tests.jobs.test_queues import run_all
from tests.jobs.workers import begin

WORK = Work(id="project-1-round-0-train", function="tests.jobs.work.count", arguments=(1,), queue=GPU, retries=())
HOURS = timedelta(hours=3)


@pytest.mark.parametrize(
    ("ago", "due"),
    [
        (timedelta(seconds=1), False),
        (timedelta(minutes=10), True),
        (-HOURS, True),
    ],
)
def test_a_reconcile_that_seems_to_lie_in_the_future_lies_long_ago(busy: Workplace, ago: timedelta, due: bool) -> None:
    project = make_project(busy.store)
    with busy.store.write() as session:
        projects.lock(session, project.id).reconciled_at = now() - ago
    tick(busy.settings, busy.redis)
    assert (f"project-{project.id}-reconcile" in queues.queue(busy.redis, STUDIO).job_ids) == due


@pytest.mark.parametrize(("ago", "rested"), [(timedelta(seconds=1), False), (HOURS, True), (-HOURS, True)])
def test_a_failure_that_seems_to_lie_in_the_future_has_rested(busy: Workplace, ago: timedelta, rested: bool) -> None:
    queues.ensure(busy.redis, replace(WORK, function="tests.jobs.work.fail"))
    run_all(busy)
    ended = (datetime.now(UTC) - ago).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    busy.redis.hset(f"rq:job:{WORK.id}", "ended_at", ended)
    assert queues.ensure(busy.redis, WORK) == rested


@pytest.mark.parametrize(("ahead", "waits"), [(-1, False), (60, True), (HOURS.total_seconds(), False)])
def test_a_retry_planned_before_the_clock_was_set_back_does_not_wait_for_hours(
    busy: Workplace, ahead: float, waits: bool
) -> None:
    queues.ensure(busy.redis, WORK)
    found = queues.queue(busy.redis, GPU)
    job = found.fetch_job(WORK.id)
    assert job is not None
    busy.redis.delete(found.key)
    found.schedule_job(job, datetime.now(UTC) + timedelta(seconds=ahead))
    queues.enqueue_retries(found)
    assert (found.job_ids == []) == waits
    assert (len(ScheduledJobRegistry(queue=found)) == 1) == waits


@pytest.mark.parametrize("jump", [HOURS, -HOURS])
def test_a_running_job_is_taken_for_dead_by_no_clock_but_ours(
    busy: Workplace, monkeypatch: pytest.MonkeyPatch, jump: timedelta
) -> None:
    """Its signs of life were dated by a clock that has since been set."""
    queues.ensure(busy.redis, WORK)
    found, _run = begin(busy.redis, GPU)
    moment = current_timestamp() + int(jump.total_seconds())
    monkeypatch.setattr(registry, "current_timestamp", lambda: moment)
    worker = LoopWorker([GPU], connection=busy.redis, serializer=queues.SERIALIZER)
    worker.clean_registries()
    lookout = Lookout()
    assert lookout.look(found) == lookout.look(found) == []
    assert StartedJobRegistry(queue=found).get_job_ids() == [WORK.id]
    monkeypatch.setattr(takeover, "SILENT_SECONDS", 0.0)
    (job,) = lookout.look(found)
    assert (job.id, job.get_status()) == (WORK.id, JobStatus.QUEUED)
    assert len(StartedJobRegistry(queue=found)) == 0


def test_no_job_is_killed_for_hours_that_only_the_clock_went(busy: Workplace) -> None:
    """RQ kills a job that by the wall clock has worked for longer than it may."""
    worker = LoopWorker([GPU], connection=busy.redis, serializer=queues.SERIALIZER)
    worker._began = time.monotonic()
    worker.set_current_job_working_time(HOURS.total_seconds())
    assert worker.current_job_working_time < 60


def test_a_worker_looks_around_by_a_clock_that_nobody_sets(busy: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = LoopWorker([GPU], connection=busy.redis, serializer=queues.SERIALIZER)
    worker.settings = busy.settings
    assert worker.should_run_maintenance_tasks
    worker.register_birth()
    worker.run_maintenance_tasks()
    assert not worker.should_run_maintenance_tasks
    worker.last_cleaned_at = datetime.now(UTC) + HOURS  # type: ignore[assignment]
    later = time.monotonic() + 2
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert worker.should_run_maintenance_tasks
