"""The application as it listens, with a Redis that does not answer; and ways to be a person or a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from backend.app import create_app
from jobs.settings import Settings
from store.database import Store
from store.tables import Project
from tests.conftest import add_round, make_project

TOKEN = "the-token-of-these-tests"
SECRET = "secret-of-the-connected-project-0123456789a"
BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
HEADER = {"X-IWeS-Secret": SECRET}
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return replace(settings, admin_token=TOKEN, redis_url="redis://127.0.0.1:1")


@pytest.fixture
def app(settings: Settings, store: Store) -> Flask:
    return create_app(settings)


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


@pytest.fixture
def project(store: Store) -> Project:
    """Connected, of cats and dogs, with a round of four tasks open."""
    project = make_project(store, tasks=4, secret=SECRET, classes=["cat", "dog"])
    add_round(store, project, 0, [1, 2, 3, 4], wanted=4)
    return project


def webhook_body() -> dict[str, Any]:
    """Somebody labelled task 1 a cat, as a real Label Studio told it."""
    capture = Path(__file__).parents[1] / "captures" / "webhook_ANNOTATION_CREATED.json"
    return dict(json.loads(capture.read_text())["requests"][0]["body"])


def csrf_token(client: FlaskClient, path: str = "/login") -> str:
    """The one in the form that a browser is shown."""
    found = re.search(r'name="csrf_token" value="([^"]+)"', client.get(path, headers=BROWSER).text)
    assert found is not None
    return found[1]


@pytest.fixture
def sign_in() -> Callable[[FlaskClient], FlaskClient]:
    """Does what a person does at the sign-in page."""

    def through_the_form(client: FlaskClient) -> FlaskClient:
        form = {"token": TOKEN, "csrf_token": csrf_token(client)}
        assert client.post("/login", data=form, headers=BROWSER).status_code == 302
        return client

    return through_the_form


@pytest.fixture
def person(client: FlaskClient, sign_in: Callable[[FlaskClient], FlaskClient]) -> FlaskClient:
    return sign_in(client)


@pytest.fixture
def broken(app: Flask, monkeypatch: pytest.MonkeyPatch) -> FlaskClient:
    """A backend whose store fails in the middle of a request, with a secret in the error."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(f"no such table: {SECRET}")

    monkeypatch.setattr("backend.dashboard.pages.look", fail)
    monkeypatch.setattr(app.extensions["callers"], "_read", fail)
    return app.test_client()
