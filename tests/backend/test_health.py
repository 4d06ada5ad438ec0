"""/health tells well, limping and down apart, quickly, to Label Studio and to anybody who asks."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from flask.testing import FlaskClient
from rq import SimpleWorker, Worker
from rq.registry import FailedJobRegistry

from backend import health
from backend.app import create_app
from backend.health import Health
from jobs import queues
from jobs.queues import GPU, STUDIO, Work
from jobs.settings import Settings
from jobs.workplace import Workplace
from store import projects
from store.database import Store
from store.tables import Project, now
from tests.conftest import a_label, make_project, put_label


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is told here is what was found: on a busy machine the checks take longer than those who ask would wait."""
    monkeypatch.setattr(health, "LIMIT_SECONDS", health.PATIENCE_SECONDS)


@pytest.fixture
def workers(busy: Workplace) -> Iterator[None]:
    """One of each queue, reported for work."""
    born = [
        Worker([queues.queue(busy.redis, name)], connection=busy.redis, serializer=queues.SERIALIZER)
        for name in (STUDIO, GPU)
    ]
    for worker in born:
        worker.register_birth()
    yield
    for worker in born:
        worker.register_death()


def just_reconciled(store: Store, project: Project, **changes: object) -> None:
    with store.write() as session:
        stored = projects.by_id(session, project.id)
        stored.reconciled_at = now()
        for name, value in changes.items():
            setattr(stored, name, value)


def test_all_is_well_while_everything_answers(busy: Workplace, store: Store, workers: None) -> None:
    just_reconciled(store, make_project(store))
    answer = create_app(busy.settings).test_client().get("/health")
    assert answer.status_code == 200
    assert answer.json == {"status": "UP", "model_class": "IWeS", "state": "ok", "problems": []}


def test_a_redis_that_is_away_degrades_and_does_not_stop(client: FlaskClient) -> None:
    answer = client.get("/health")
    assert answer.status_code == 200
    assert (answer.json["status"], answer.json["state"]) == ("UP", "degraded")
    assert "Redis does not answer" in answer.json["problems"][0]


def test_a_redis_that_never_answers_keeps_nobody_waiting(
    settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the first who asks nor, once it is known, anybody else."""
    monkeypatch.setattr(health, "LIMIT_SECONDS", 0.3)
    stuck = threading.Event()
    found = Health(Workplace(settings, store))
    found._redis.ask = lambda: [str(stuck.wait())]
    assert found.report().up
    found._redis._asked_at -= health.PATIENCE_SECONDS
    assert found.report().problems == ["Redis does not answer: labels are taken in, but no job runs until it is back"]
    stuck.set()


def test_checks_are_made_once_for_all_who_ask(settings: Settings, store: Store) -> None:
    asked: list[int] = []
    found = Health(Workplace(settings, store))
    found._redis.ask = lambda: asked.append(1) or []  # type: ignore[func-returns-value]
    for _ in range(20):
        found.report()
    assert len(asked) == 1


def test_only_a_store_that_cannot_be_reached_is_down(settings: Settings, place: Workplace) -> None:
    app = create_app(place.settings)
    assert app.test_client().get("/health").status_code == 200
    if not place.store.is_sqlite:
        pytest.skip("needs a database that can be taken away")
    shutil.rmtree(settings.home)
    app.extensions["health"] = Health(app.extensions["workplace"])
    answer = app.test_client().get("/health")
    assert answer.status_code == 503
    assert (answer.json["status"], answer.json["state"]) == ("DOWN", "down")
    assert str(settings.home) not in answer.text


def test_a_queue_that_nobody_serves_is_a_problem(busy: Workplace) -> None:
    queues.ensure(busy.redis, Work("project-1-round-0-train", "tests.jobs.work.count", (1,), GPU))
    assert [problem for problem in Health(busy).report().problems if "no worker" in problem] == [
        "no worker serves the queue studio; jobs that wait there: 0",
        "no worker serves the queue gpu; jobs that wait there: 1",
    ]


def test_jobs_that_failed_for_good_are_a_problem_for_a_day(busy: Workplace, workers: None) -> None:
    queues.ensure(busy.redis, Work("project-1-reconcile", "tests.jobs.work.fail", (1,), STUDIO, retries=()))
    found = queues.queue(busy.redis, STUDIO)
    SimpleWorker([found], connection=busy.redis, serializer=queues.SERIALIZER).work(burst=True)
    complaint = "1 job failed for good within a day: `iwes status` says why"
    assert complaint in Health(busy).report().problems
    busy.redis.zincrby(FailedJobRegistry(queue=found).key, -24 * 3600, "project-1-reconcile")
    assert complaint not in Health(busy).report().problems


def test_a_project_that_is_not_reconciled_is_a_problem(place: Workplace, store: Store) -> None:
    project = make_project(store)
    complaint = f"project {project.id} was not compared with Label Studio for more than 15 minutes"
    assert complaint in Health(place).report().problems
    just_reconciled(store, project)
    assert complaint not in Health(place).report().problems


def test_labels_that_no_webhook_told_of_are_a_problem(place: Workplace, store: Store) -> None:
    """They were found by reconcile, so each came minutes late."""
    project = make_project(store, tasks=5)
    complaint = f"project {project.id} gets labels but no webhooks: they are only found by reconcile"
    moment = now()
    just_reconciled(store, project, webhook_seen_at=moment - timedelta(minutes=20))
    for n in (1, 2, 3):
        put_label(store, project, n, a_label(n, created_at=moment - timedelta(minutes=2)))
    assert complaint in Health(place).report().problems
    just_reconciled(store, project, webhook_seen_at=moment)
    assert complaint not in Health(place).report().problems


def test_labels_from_long_ago_and_those_that_came_along_are_none(place: Workplace, store: Store) -> None:
    project = make_project(store, tasks=8)
    just_reconciled(store, project, webhook_seen_at=now() - timedelta(days=2))
    for n in (1, 2, 3):
        put_label(store, project, n, a_label(n, created_at=now() - timedelta(days=1)))
    for n in (4, 5, 6):
        put_label(store, project, n, a_label(n, created_at=now(), imported=True))
    assert not [problem for problem in Health(place).report().problems if "webhooks" in problem]


def test_a_disk_that_is_nearly_full_is_a_problem(place: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "LEAST_GIGABYTES", 10**9)
    assert "less than 1e+09 GB is left on the disk of IWES_HOME" in Health(place).report().problems


def test_problems_show_neither_titles_nor_addresses_nor_secrets(place: Workplace, store: Store) -> None:
    project = make_project(store, title="patients of Dr. No")
    told = json.dumps(Health(place).report().as_dict())
    for hidden in (project.title, project.secret, project.token, "studio.test", place.settings.redis_url):
        assert hidden not in told
    assert str(Path(place.settings.home)) not in told
