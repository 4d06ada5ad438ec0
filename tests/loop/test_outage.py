"""Label Studio is down for ten minutes in the middle of publishing: it is tried for as long as that takes, and what was
done before is neither lost nor done twice. The waits are shortened, not the number of tries."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from rq.job import JobStatus
from rq.registry import ScheduledJobRegistry

from backend.embedded.ports import any_free
from backend.embedded.process import Process, Stack
from backend.embedded.redis import start_redis
from backend.up import START_SECONDS, _answers
from jobs import queues
from jobs.connect import Options, connect
from jobs.loop import due, reconcile_work
from jobs.queues import GPU, STUDIO, Work
from jobs.reconcile import reconcile_project
from jobs.settings import Settings
from jobs.status import queue_status
from jobs.workplace import Workplace, workplace
from store import rounds
from store.tables import Project, RoundState
from tests.jobs.test_queues import run_all
from tests.live import Pool, Wire, drawn_tasks, reached_through, state, stored

pytestmark = [pytest.mark.studio, pytest.mark.slow]

TEN_MINUTES = 600


@pytest.fixture
def alone(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workplace]:
    """A backend without workers: the test itself does the jobs."""
    home = tmp_path_factory.mktemp("alone")
    settings = Settings.from_env({"IWES_HOME": str(home), "IWES_PORT": str(any_free())})
    for name, value in settings.as_env().items():
        monkeypatch.setenv(name, value)
    with Stack() as stack, workplace(settings) as place:
        start_redis(stack, settings)
        command = [sys.executable, "-c", "from backend.cli import main; main()", "serve"]
        web = stack.start(Process("serve", command, home / "serve.log", dict(os.environ)))
        web.wait_until(lambda: _answers(settings), START_SECONDS, "it answered")
        yield place


@pytest.fixture
def wire(studio: object) -> Iterator[Wire]:
    wire = Wire(studio.url)  # type: ignore[attr-defined]
    yield wire
    wire.close()


def tries_within(seconds: float, waits: tuple[int, ...]) -> int:
    """How many tries an outage that long sees, at least: the waits grow, then come the rest and the waits again."""
    cycle = [*waits, queues.BACK_AFTER.total_seconds()]
    count, past = 1, 0.0
    while (past := past + cycle[(count - 1) % len(cycle)] * (1 + queues.JITTER)) < seconds:
        count += 1
    return count


def test_label_studio_down_for_ten_minutes(
    alone: Workplace, new_pool: Callable[..., Pool], wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = new_pool(size=30)
    project = connect(alone, pool.studio.url, pool.studio.token, pool.id, Options(k=6, seed_size=6)).project
    reached_through(alone, project.id, wire.url)
    person = pool.annotator()
    person.run(threading.Event(), limit=6)
    run_all(alone, GPU)
    assert state(alone, project) == (1, RoundState.DRAWN)
    drawn = drawn_tasks(alone, project, 1)

    def cut_at_the_switch(method: str, path: str, body: bytes) -> bytes:
        if method == "PATCH" and path == f"/api/projects/{pool.id}/":
            wire.cut.set()
        return body

    wire.change = cut_at_the_switch
    (publish,) = _due(alone, project)
    tries = tries_within(TEN_MINUTES, publish.retries)
    print(f"\n{tries} tries within ten minutes, at most {60 * (1 + queues.JITTER):.0f} s apart")
    monkeypatch.setattr(queues, "BACK_AFTER", timedelta())
    reconcile = reconcile_work(project)
    for _ in range(tries):
        _let_waits_be_over(alone, publish, reconcile)
        run_all(alone, STUDIO)
        told = {job.id: job for job in queue_status(alone.redis).jobs}
        for work in (publish, reconcile):
            assert told[work.id].state in ("to be retried", "failed")
            assert "no answer from Label Studio" in str(told[work.id].reason)
    assert state(alone, project) == (1, RoundState.DRAWN)
    person.run(threading.Event(), limit=2)  # annotators go on with the last queue

    wire.change = lambda method, path, body: body
    wire.cut.clear()
    _let_waits_be_over(alone, publish, reconcile)
    run_all(alone, STUDIO)
    for work in (publish, reconcile):
        job = queues.find(alone.redis, work.id)
        assert job is not None
        assert job.get_status() == JobStatus.FINISHED
    assert state(alone, project) == (1, RoundState.OPEN)
    assert drawn_tasks(alone, project, 1) == drawn
    queues_there = pool.call("GET", f"/api/projects/{pool.id}/model-versions/")
    assert queues_there["iwes-queue-1"] == len(drawn), "none of its entries is missing or doubled"
    assert pool.settings()["model_version"] == "iwes-queue-1"
    with alone.store.read() as session:
        assert [r.number for r in rounds.all_of(session, project)] == [0, 1]
    assert reconcile_project(alone, project.id) == {}
    assert stored(alone, project.id).reconciled_at is not None


def _let_waits_be_over(place: Workplace, *works: Work) -> None:
    """What the tick and the wall clock would do together."""
    found = queues.queue(place.redis, STUDIO)
    later = ScheduledJobRegistry(queue=found)
    for job_id in later.get_job_ids():
        place.redis.zadd(later.key, {job_id: 1})
    queues.enqueue_retries(found)
    for work in works:
        queues.ensure(place.redis, work)


def _due(place: Workplace, project: Project) -> list[Work]:
    with place.store.read() as session:
        return due(session, project)
