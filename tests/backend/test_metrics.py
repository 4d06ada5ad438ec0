"""/metrics, read as Prometheus reads it: with a real Redis, real RQ queues, and once with real web processes."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests
from flask.testing import FlaskClient
from prometheus_client.parser import text_string_to_metric_families
from rq import SimpleWorker, Worker
from sqlalchemy import text

from backend.admin_token import admin_token
from backend.app import create_app
from backend.embedded.ports import any_free
from jobs import measures, queues
from jobs.queues import GPU, STUDIO, Work
from jobs.settings import Settings
from jobs.workplace import Workplace
from store import projects, rounds
from store.database import Store
from store.tables import Model, now
from tests.conftest import a_label, add_round, make_project, put_label

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read(page: str) -> Samples:
    families = list(text_string_to_metric_families(page))
    assert len({family.name for family in families}) == len(families)
    samples = [sample for family in families for sample in family.samples]
    found = {(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples}
    assert len(found) == len(samples)
    return found


def scraped(client: FlaskClient, settings: Settings) -> Samples:
    answer = client.get("/metrics", headers=shown(settings))
    assert answer.status_code == 200, answer.text
    return read(answer.text)


def shown(settings: Settings) -> dict[str, str]:
    return {"Authorization": f"Bearer {admin_token(settings)}"}


def value(samples: Samples, name: str, **labels: object) -> float | None:
    return samples.get((name, frozenset((key, str(label)) for key, label in labels.items())))


@pytest.fixture
def scrape(busy: Workplace) -> FlaskClient:
    return create_app(busy.settings).test_client()


def test_the_store_is_counted_by_project(scrape: FlaskClient, busy: Workplace, store: Store) -> None:
    project = make_project(store, tasks=9)
    make_project(store, tasks=5, studio_id=2, secret="another", connected=False)
    add_round(store, project, 0, [1, 2], wanted=2)
    for n in (1, 2):
        put_label(store, project, n, a_label(n))
    with store.write() as session:
        model = Model(version="iwes-model-0", examples=2, metrics={})
        rounds.trained(session, project, rounds.by_number(session, project, 0), model)
        projects.by_id(session, project.id).reconciled_at = moment = now()
    add_round(store, project, 1, [3, 4], wanted=2)
    put_label(store, project, 3, a_label(3, None))
    put_label(store, project, 5, a_label(4))
    put_label(store, project, 6, a_label(5, imported=True))
    samples = scraped(scrape, busy.settings)
    mine = {"project": project.id}
    assert value(samples, "iwes_tasks", **mine) == 9
    counted = {kind: value(samples, "iwes_labels", **mine, provenance=kind) for kind in ("asked", "manual", "imported")}
    assert counted == {"asked": 2, "manual": 1, "imported": 1}
    assert value(samples, "iwes_skips", **mine) == 1
    assert value(samples, "iwes_rounds", **mine, subset="", state="trained") == 1
    assert value(samples, "iwes_rounds", **mine, subset="", state="open") == 1
    assert value(samples, "iwes_model_info", **mine, version="iwes-model-0") == 1
    assert value(samples, "iwes_reconciled_timestamp_seconds", **mine) == pytest.approx(moment.timestamp())
    assert value(samples, "iwes_webhook_seen_timestamp_seconds", **mine) == 0
    assert {dict(labels)["project"] for _name, labels in samples if "project" in dict(labels)} == {str(project.id)}


def test_the_queues_are_counted_without_touching_them(scrape: FlaskClient, busy: Workplace) -> None:
    for number, retries in ((0, (600,)), (1, ())):
        failing = Work(f"project-1-round-{number}-publish", "tests.jobs.work.fail", (1,), STUDIO, retries=retries)
        queues.ensure(busy.redis, failing)
    found = queues.queue(busy.redis, STUDIO)
    SimpleWorker([found], connection=busy.redis, serializer=queues.SERIALIZER).work(burst=True)
    queues.ensure(busy.redis, Work("project-1-round-2-train", "tests.jobs.work.count", (1,), GPU))
    worker = Worker([queues.queue(busy.redis, GPU)], connection=busy.redis, serializer=queues.SERIALIZER)
    worker.register_birth()
    samples = scraped(scrape, busy.settings)
    worker.register_death()
    assert value(samples, "iwes_redis_up") == 1
    studio = {state: value(samples, "iwes_queue_jobs", queue=STUDIO, state=state) for state in ("waiting", "started")}
    assert studio == {"waiting": 0, "started": 0}
    assert value(samples, "iwes_queue_jobs", queue=STUDIO, state="scheduled") == 1
    assert value(samples, "iwes_queue_jobs", queue=STUDIO, state="failed") == 1
    assert value(samples, "iwes_queue_jobs", queue=GPU, state="waiting") == 1
    assert (value(samples, "iwes_workers", queue=STUDIO), value(samples, "iwes_workers", queue=GPU)) == (0, 1)
    assert value(scraped(scrape, busy.settings), "iwes_workers", queue=GPU) == 0


def test_jobs_and_repairs_are_counters_that_workers_on_any_host_add_to(scrape: FlaskClient, busy: Workplace) -> None:
    measures.count_repairs(busy.redis, 7, {"labels missed": 3})
    measures.count_job(busy.redis, "train", "finished", 12.0)
    measures.count_job(busy.redis, "train", "retried", 0.2)
    samples = scraped(scrape, busy.settings)
    assert value(samples, "iwes_reconcile_repairs_total", project=7, kind="labels missed") == 3
    assert value(samples, "iwes_jobs_total", kind="train", outcome="finished") == 1
    assert value(samples, "iwes_jobs_total", kind="train", outcome="retried") == 1
    assert value(samples, "iwes_jobs_total", kind="train", outcome="failed") == 0
    assert value(samples, "iwes_job_seconds_bucket", kind="train", le="0.5") == 1
    assert value(samples, "iwes_job_seconds_bucket", kind="train", le="+Inf") == 2
    assert value(samples, "iwes_job_seconds_count", kind="train") == 2
    assert value(samples, "iwes_job_seconds_sum", kind="train") == pytest.approx(12.2)


def test_webhooks_are_timed_by_what_became_of_them(scrape: FlaskClient, busy: Workplace, store: Store) -> None:
    project = make_project(store)
    event = {"action": "PROJECT_UPDATED", "project": {"id": project.studio_id}}
    for secret, body in ((project.secret, event), (project.secret, {"action": 5}), ("wrong", event)):
        scrape.post("/webhook", json=body, headers={"X-IWeS-Secret": secret})
    samples = scraped(scrape, busy.settings)
    assert value(samples, "iwes_webhook_seconds_count", outcome="taken") == 1
    assert value(samples, "iwes_webhook_seconds_count", outcome="refused") == 2
    assert value(samples, "iwes_webhook_seconds_bucket", outcome="taken", le="+Inf") == 1


def test_without_redis_the_rest_is_told(client: FlaskClient, place: Workplace, store: Store) -> None:
    project = make_project(store, tasks=3)
    samples = scraped(client, place.settings)
    assert value(samples, "iwes_redis_up") == 0
    assert value(samples, "iwes_tasks", project=project.id) == 3


def test_without_a_store_the_rest_is_told(scrape: FlaskClient, busy: Workplace) -> None:
    place: Workplace = scrape.application.extensions["workplace"]
    scraped(scrape, busy.settings)
    with place.store.write() as session:
        session.execute(text("ALTER TABLE project RENAME TO somewhere_else"))
    scrape.application.extensions["stock"]._counted._stale_at = 0.0
    samples = scraped(scrape, busy.settings)
    with place.store.write() as session:
        session.execute(text("ALTER TABLE somewhere_else RENAME TO project"))
    assert value(samples, "iwes_store_up") == 0
    assert value(samples, "iwes_queue_jobs", queue=GPU, state="waiting") == 0


def test_a_store_is_not_counted_for_each_who_asks(scrape: FlaskClient, busy: Workplace, store: Store) -> None:
    project = make_project(store, tasks=3)
    assert value(scraped(scrape, busy.settings), "iwes_tasks", project=project.id) == 3
    with store.write() as session:
        projects.by_id(session, project.id).connected = False
    assert value(scraped(scrape, busy.settings), "iwes_tasks", project=project.id) == 3


def test_the_documentation_names_what_there_is(scrape: FlaskClient, busy: Workplace, store: Store) -> None:
    measures.count_repairs(busy.redis, 1, {"labels missed": 1})
    page = scrape.get("/metrics", headers=shown(busy.settings)).text
    told = {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")}
    table = [line.split("|")[1] for line in OPERATIONS.read_text().splitlines() if line.startswith("| `iwes_")]
    assert set(re.findall(r"iwes_\w+", " ".join(table))) == told


def test_only_people_with_the_token_may_look(scrape: FlaskClient) -> None:
    answer = scrape.get("/metrics")
    assert answer.status_code == 401
    assert "iwes_" not in answer.text


def test_every_answer_carries_an_id_of_its_own_or_the_one_it_was_given(scrape: FlaskClient) -> None:
    assert len({scrape.get("/health").headers["X-Request-Id"] for _ in range(3)}) == 3
    assert scrape.get("/health", headers={"X-Request-Id": "from-a-proxy.1"}).headers["X-Request-Id"] == "from-a-proxy.1"
    for forged in ("a b", "x" * 65, "é"):
        assert scrape.get("/health", headers={"X-Request-Id": forged}).headers["X-Request-Id"] != forged


def test_what_a_request_says_is_not_logged(scrape: FlaskClient, store: Store, caplog: pytest.LogCaptureFixture) -> None:
    project = make_project(store)
    caplog.set_level(logging.DEBUG)
    of = {"id": project.studio_id, "invite_token": "HIDDEN", "task_data_password": "HIDDEN"}
    for secret in (project.secret, "HIDDEN"):
        for event in (
            {"action": "PROJECT_UPDATED", "project": of},
            {"action": "TASKS_CREATED", "project": of, "tasks": 5},
        ):
            scrape.post("/webhook?token=HIDDEN", json=event, headers={"X-IWeS-Secret": secret})
    assert [record.args[:3] for record in caplog.records if record.name == "backend.tracing"] == [
        ("POST", "/webhook", status) for status in (400, 401, 401)
    ]
    assert "HIDDEN" not in caplog.text


@pytest.mark.slow
def test_figures_and_logs_of_all_web_processes_come_together(busy: Workplace, tmp_path: Path) -> None:
    """gunicorn as `iwes serve` starts it. Webhooks that are refused leave a line, which says which process did."""
    settings = {**busy.settings.as_env(), "REDIS_URL": busy.settings.redis_url, "IWES_PORT": str(any_free())}
    address = f"http://127.0.0.1:{settings['IWES_PORT']}"
    command = [sys.executable, "-c", "from backend.cli import main; main()", "serve"]
    log = tmp_path / "log"
    with log.open("w") as file:
        server = subprocess.Popen(
            command, env={**os.environ, **settings, "IWES_LOG": "json", "IWES_WEB_PROCESSES": "2"}, stderr=file
        )
    try:
        _until(lambda: _answers(address), "it answered")
        answered: list[str] = []
        with ThreadPoolExecutor(8) as senders:
            _until(
                lambda: (
                    bool(answered.extend(senders.map(_refused, [address] * 32)))
                    or len({line["process"] for line in _refusals(log)}) == 2
                ),
                "both processes had answered",
            )
        _until(lambda: _counted(address, busy.settings) == len(answered), "all were counted")
        assert {line["request"] for line in _refusals(log)} == set(answered)
    finally:
        server.terminate()
        server.wait(30)
    assert {json.loads(line)["logger"] for line in log.read_text().splitlines()} >= {"gunicorn.error"}


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.1)


def _answers(address: str) -> bool:
    try:
        return requests.get(f"{address}/health", timeout=1).ok
    except requests.RequestException:
        return False


def _refused(address: str) -> str:
    answer = requests.post(f"{address}/webhook", json={}, headers={"X-IWeS-Secret": "wrong"}, timeout=30)
    assert answer.status_code == 401
    return answer.headers["X-Request-Id"]


def _refusals(log: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return [line for line in lines if line["message"].startswith("POST '/webhook' answered 401")]


def _counted(address: str, settings: Settings) -> float:
    answer = requests.get(f"{address}/metrics", headers=shown(settings), timeout=30)
    return value(read(answer.text), "iwes_webhook_seconds_count", outcome="refused") or 0
