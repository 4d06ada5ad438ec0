"""The OpenAPI description says what is true: of the routes there are, and of what they take."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import jsonschema_rs
import pytest
from flask.testing import FlaskClient

from backend.admin_token import admin_token
from backend.openapi import PATHS, SCHEMAS, description
from jobs.settings import Settings
from studio.errors import BadMessage
from studio.messages import YEARS, read_event, read_json, read_prediction_request
from tests.backend.mutations import as_sent, captures, spoilt

UNDESCRIBED = {"static"}
"""Files that pages consist of."""
UNDESCRIBABLE = ("NaN", "minus infinity", "half a pair of surrogates", "sixty levels")
"""What is no JSON, or no text; and how deep a body may be, schemas cannot say."""
READERS = {"/webhook": ("Event", read_event), "/predict": ("PredictionRequest", read_prediction_request)}


def test_every_route_is_described_and_every_description_has_its_route(client: FlaskClient) -> None:
    routes = {
        (re.sub(r"<(?:[^:>]+:)?([^>]+)>", r"{\1}", rule.rule), method.lower())
        for rule in client.application.url_map.iter_rules()
        if rule.endpoint not in UNDESCRIBED
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    assert {(path, method) for path, methods in PATHS.items() for method in methods} == routes


def test_the_description_is_served_to_whoever_shows_the_token(client: FlaskClient, settings: Settings) -> None:
    assert client.get("/openapi.json").status_code == 401
    shown = {"Authorization": f"Bearer {admin_token(settings)}"}
    assert client.get("/openapi.json", headers=shown).json == description()


def test_every_part_that_is_referred_to_is_there() -> None:
    refers = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(description())))
    assert refers == set(SCHEMAS)
    jsonschema_rs.meta.validate(_schema("Event"))


def test_every_capture_is_as_described() -> None:
    for name, path, body in captures():
        if path in READERS:
            assert _validator(READERS[path][0]).is_valid(body), name


@pytest.mark.parametrize("every", [13, pytest.param(1, marks=pytest.mark.slow)])
def test_what_the_description_forbids_is_refused_and_what_it_allows_is_taken(every: int) -> None:
    validators = {path: _validator(name) for path, (name, _read) in READERS.items()}
    compared = {True: 0, False: 0}
    for name, path, content in spoilt(every):
        if path not in READERS or name.endswith(UNDESCRIBABLE):
            continue
        body = json.loads(content)
        refused = _refusal(path, content)
        if refused and "is not the project.id" in refused:
            continue  # a schema cannot compare two fields
        assert validators[path].is_valid(body) == (refused is None), (name, refused)
        compared[refused is None] += 1
    assert compared[True] > 1000 // every
    assert compared[False] > 1000 // every


def test_a_list_may_be_as_long_as_described() -> None:
    most = SCHEMAS["Event"]["oneOf"][2]["properties"]["annotations"]["anyOf"][1]["maxItems"]
    body: dict[str, Any] = {"action": "ANNOTATIONS_DELETED", "project": {"id": 1}}
    for count in (most, most + 1):
        body["annotations"] = [{"id": 1}] * count
        assert (_refusal("/webhook", as_sent(body)) is None) == _validator("Event").is_valid(body) == (count == most)


def _refusal(path: str, content: bytes) -> str | None:
    try:
        READERS[path][1](read_json(content))
    except BadMessage as error:
        return str(error)
    return None


def _schema(name: str) -> dict[str, Any]:
    whole = description() | {"$ref": f"#/components/schemas/{name}"}
    return {key: whole[key] for key in ("$ref", "components")}


def _validator(name: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(_schema(name), validate_formats=True, formats={"date-time": _is_time})


def _is_time(text: str) -> bool:
    """As the description puts it: a time, of these years."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC).year in YEARS
    except (ValueError, OverflowError):
        return False
