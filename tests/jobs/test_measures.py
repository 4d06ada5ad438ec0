"""What happened is counted once in a real Redis, by whoever saw it, and a Redis that is away stops nobody."""

from __future__ import annotations

import pytest
from rq import SimpleWorker

from jobs import measures, queues
from jobs.measures import JOB_BOUNDS, WEBHOOK_BOUNDS, Measures, Tally
from jobs.queues import STUDIO, Work
from jobs.worker import run as run_worker
from jobs.workplace import Workplace
from store.database import Store
from store.tables import Project
from tests.conftest import make_project

KIND = "observed"
"""Jobs are told apart by their module."""


@pytest.fixture
def project(store: Store, busy: Workplace, monkeypatch: pytest.MonkeyPatch) -> Project:
    """One whose jobs, which read the environment, find this test's store and Redis."""
    for name, value in busy.settings.as_env().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("REDIS_URL", busy.settings.redis_url)
    return make_project(store)


def test_repairs_of_several_reconciles_add_up_by_project_and_kind(busy: Workplace) -> None:
    measures.count_repairs(busy.redis, 1, {"labels missed": 3, "queue restored": 0})
    measures.count_repairs(busy.redis, 1, {"labels missed": 2})
    measures.count_repairs(busy.redis, 2, {"tasks “added”, twice": 1})
    assert Measures.read(busy.redis).counts("repairs") == {(1, "labels missed"): 5, (2, "tasks “added”, twice"): 1}


def test_a_job_is_counted_by_outcome_and_by_how_long_it_took(busy: Workplace) -> None:
    for outcome, seconds in (("finished", 0.1), ("finished", 70.0), ("failed", 9000.0)):
        measures.count_job(busy.redis, "train", outcome, seconds)
    measures.count_job(busy.redis, "train", "killed")
    counted = Measures.read(busy.redis)
    assert counted.counts("jobs") == {("train", "finished"): 2, ("train", "failed"): 1, ("train", "killed"): 1}
    taken = counted.histograms("job_seconds", JOB_BOUNDS)["train"]
    assert dict(taken.buckets) == dict(zip(JOB_BOUNDS, [1, 1, 1, 1, 1, 1, 2, 2, 2, 3], strict=True))
    assert taken.sum == pytest.approx(9070.1)


def test_a_redis_that_is_away_costs_the_figure_and_nothing_else(place: Workplace) -> None:
    measures.count_repairs(place.redis, 1, {"labels missed": 3})
    measures.count_job(place.redis, "train", "finished", 1.0)


def test_webhooks_answered_while_redis_was_away_are_counted_when_it_is_back(place: Workplace, busy: Workplace) -> None:
    tally = Tally()
    tally.webhook("taken", 0.004)
    tally.flush(place.redis)
    tally.webhook("taken", 0.3)
    tally.flush(busy.redis)
    tally.flush(busy.redis)
    taken = Measures.read(busy.redis).histograms("webhook_seconds", WEBHOOK_BOUNDS)["taken"]
    assert dict(taken.buckets) == dict(zip(WEBHOOK_BOUNDS, [1, 1, 1, 1, 1, 1, 2, 2, 2], strict=True))
    assert taken.sum == pytest.approx(0.304)


def test_processes_add_to_the_same_figures(busy: Workplace) -> None:
    for _process in range(2):
        tally = Tally()
        tally.webhook("refused", 0.02)
        tally.flush(busy.redis)
    assert Measures.read(busy.redis).histograms("webhook_seconds", WEBHOOK_BOUNDS)["refused"].buckets[-1][1] == 2


def test_a_job_that_fails_counts_as_retried_until_its_last_try(busy: Workplace, project: Project) -> None:
    for name, function, retries in (("first", "fail", (600,)), ("last", "fail", ()), ("good", "talk", (600,))):
        queues.ensure(busy.redis, _work(f"project-1-{name}", function, project.id, retries))
    found = queues.queue(busy.redis, STUDIO)
    SimpleWorker([found], connection=busy.redis, serializer=queues.SERIALIZER).work(burst=True)
    counted = Measures.read(busy.redis)
    assert counted.counts("jobs") == {(KIND, "retried"): 1, (KIND, "failed"): 1, (KIND, "finished"): 1}
    assert counted.histograms("job_seconds", JOB_BOUNDS)[KIND].buckets[-1][1] == 3


def test_a_job_whose_process_is_killed_is_counted_by_its_worker(busy: Workplace) -> None:
    queues.ensure(busy.redis, _work("project-1-round-0-publish", "kill_itself", 1, ()))
    run_worker(busy.settings, [STUDIO], burst=True)
    assert Measures.read(busy.redis).counts("jobs") == {("kill_itself", "killed"): 1}


def _work(job_id: str, function: str, project_id: int, retries: tuple[int, ...]) -> Work:
    return Work(job_id, f"tests.jobs.observed.{function}", (project_id, 0), STUDIO, retries=retries)
