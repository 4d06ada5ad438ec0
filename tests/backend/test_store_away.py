"""A store that is locked, full or gone for a moment: requests get a clear answer in time, and nothing is spoilt."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import func, select, text
from sqlalchemy.exc import TimeoutError as PoolTimeout
from werkzeug.test import TestResponse

from backend import app
from jobs import logs
from jobs.settings import Settings
from store import projects
from store.database import Store
from store.tables import Label, Project
from studio.messages import read_event
from tests.conftest import add_round, make_project
from tests.full_disk import no_file_beyond

CREATED = json.loads((Path(__file__).parent.parent / "captures" / "webhook_ANNOTATION_CREATED.json").read_text())


@pytest.fixture
def impatient(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[FlaskClient]:
    from dataclasses import replace

    monkeypatch.setattr(app, "BUSY_SECONDS", 0.2)
    made = app.create_app(replace(settings, redis_url="redis://127.0.0.1:1"))
    yield made.test_client()
    made.extensions["workplace"].store.close()


@pytest.fixture
def project(store: Store) -> Project:
    project = make_project(store, tasks=200, control="cls", target="img", classes=["cat", "dog", "bird"])
    add_round(store, project, 0, [1, 2, 3, 4, 5, 6, 7, 8], wanted=8)
    return project


def send(client: FlaskClient) -> TestResponse:
    body: Any = CREATED["requests"][0]["body"]
    return client.post("/webhook", json=body, headers={"X-IWeS-Secret": "s3cret"})


def labels(store: Store) -> int:
    with store.read() as session:
        return session.scalar(select(func.count()).select_from(Label)) or 0


def assert_refused_for_now(answer: TestResponse) -> None:
    assert answer.status_code == 503, answer.text
    assert "try again" in answer.json["error"]
    assert int(answer.headers["Retry-After"]) > 0


def test_a_webhook_that_finds_the_store_locked_is_told_to_come_again(
    impatient: FlaskClient, store: Store, project: Project
) -> None:
    with store.write() as session:
        projects.lock(session, project.id)
        assert_refused_for_now(send(impatient))
        assert impatient.get("/health").status_code == 200
    assert labels(store) == 0
    assert send(impatient).status_code == 200
    assert labels(store) == 1


def test_a_webhook_that_finds_the_disk_full_is_told_to_come_again(
    impatient: FlaskClient, store: Store, project: Project
) -> None:
    if not store.is_sqlite:
        pytest.skip("PostgreSQL's disk is not ours")
    file = Path(str(store.engine.url.database))
    with no_file_beyond(file.with_name(f"{file.name}-wal").stat().st_size):
        assert_refused_for_now(send(impatient))
        assert labels(store) == 0
    assert send(impatient).status_code == 200
    assert labels(store) == 1
    with store.read() as session:
        assert session.scalar(text("PRAGMA integrity_check")) == "ok"


def test_webhooks_for_which_no_connection_is_left_are_told_so_after_one_wait(
    impatient: FlaskClient, project: Project
) -> None:
    place, intake = (impatient.application.extensions[name] for name in ("workplace", "intake"))
    with ExitStack() as stack:
        with suppress(PoolTimeout):
            while True:
                stack.enter_context(place.store.read()).execute(text("SELECT 1"))
        assert_refused_for_now(send(impatient))
        event = read_event(CREATED["requests"][0]["body"])
        failures = []
        for stored in [intake.announce(project.id, event) for _ in range(5)]:
            with pytest.raises(PoolTimeout) as failed:
                stored()
            failures.append(failed.value)
        assert all(failure is failures[0] for failure in failures)
    assert send(impatient).status_code == 200
    assert labels(place.store) == 1


def test_connections_that_postgresql_has_dropped_are_made_anew(
    impatient: FlaskClient, store: Store, project: Project
) -> None:
    if store.is_sqlite:
        pytest.skip("SQLite has no connection to lose; set IWES_TEST_DATABASE_URL")
    assert send(impatient).status_code == 200
    with store.engine.connect() as connection:
        drop = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        connection.execute(text(f"{drop} AND datname = current_database()"))
    assert send(impatient).status_code == 200
    assert labels(store) == 1


def test_what_is_logged_of_a_webhook_that_had_to_wait_says_whose_it_was(
    impatient: FlaskClient, store: Store, project: Project
) -> None:
    told = []

    class Listening(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append({"line": record.getMessage(), **logs.known()})

    listening = Listening()
    logging.getLogger("backend").addHandler(listening)
    logging.getLogger("backend").setLevel(logging.INFO)
    try:
        with store.write() as session:
            projects.lock(session, project.id)
            answer = send(impatient)
    finally:
        logging.getLogger("backend").removeHandler(listening)
        logging.getLogger("backend").setLevel(logging.NOTSET)
    assert [one["line"][:18] for one in told] == ["a request cannot b", "POST '/webhook' an"]
    assert {(one["project"], one["request"]) for one in told} == {(project.id, answer.headers["X-Request-Id"])}
