"""What programs may ask for over HTTP: with credentials, in JSON, and told clearly what was wrong."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from flask.testing import FlaskClient

from backend.admin_token import admin_token
from backend.openapi import description
from jobs.settings import Settings
from store.database import Store
from tests.backend.command import Iwes
from tests.backend.test_cli import a_judged_project
from tests.conftest import make_project


@pytest.fixture
def ask(client: FlaskClient, settings: Settings) -> Any:
    headers = {"Authorization": f"Bearer {admin_token(settings)}"}
    return lambda path: client.get(path, headers=headers)


@pytest.mark.parametrize("path", ["/api/projects", "/api/projects/1", "/api/projects/1/estimates"])
def test_nobody_gets_in_without_credentials(client: FlaskClient, path: str) -> None:
    assert client.get(path).status_code == 401


def test_a_project_is_told_as_the_command_tells_it(ask: Any, iwes: Iwes, store: Store) -> None:
    a_judged_project(store)
    told = json.loads(iwes("status --json").out)["projects"]
    assert ask("/api/projects").json == {"projects": told}
    assert ask("/api/projects/1").json == told[0]
    estimates = ask("/api/projects/1/estimates?half_width=0.1&target=0.9").json
    printed = json.loads(iwes("estimate --project 1 --half-width 0.1 --target 0.9 --json").out)
    assert printed == {"project": 1, "url": "http://studio.test", **estimates}
    assert estimates["advice"] is None or "the target is 90 %" in estimates["advice"]["reason"]


@pytest.mark.parametrize("with_labels", [False, True])
def test_answers_are_as_described(ask: Any, store: Store, with_labels: bool) -> None:
    a_judged_project(store) if with_labels else make_project(store, tasks=3)
    for path, schema in {"/api/projects/1": "ProjectStatus", "/api/projects/1/estimates": "Estimates"}.items():
        whole = {"components": description()["components"], "$ref": f"#/components/schemas/{schema}"}
        jsonschema_rs.validate(whole, ask(path).json)


def test_an_unknown_project_is_not_found(ask: Any) -> None:
    for path in ("/api/projects/7", "/api/projects/7/estimates"):
        answer = ask(path)
        assert answer.status_code == 404
        assert answer.json == {"error": "there is no project 7 in the store; /api/projects lists those there are"}


@pytest.mark.parametrize("field", ["half_width", "target"])
@pytest.mark.parametrize("value", ["", "much", "0", "1", "-0.1", "nan", "inf", "95"])
def test_a_number_that_is_none_to_aim_for_is_refused_by_name(ask: Any, store: Store, field: str, value: str) -> None:
    make_project(store, tasks=3)
    answer = ask(f"/api/projects/1/estimates?{field}={value}")
    assert answer.status_code == 400
    assert answer.json["error"].startswith(f"{field} is {value!r}: expected a number between 0 and 1")
