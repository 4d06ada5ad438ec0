"""Payloads made from the OpenAPI description that is served: what it allows, what it forbids, and both spoilt."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as examples
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.generation.case import Case
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from backend.admin_token import admin_token
from backend.dashboard import live
from backend.openapi import LABEL_STUDIO
from jobs.settings import Settings
from tests.backend.door import HEADER, Door
from tests.backend.mutations import JUNK, as_sent, places, replaced, without

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    allow_header_conformance,
    unsupported_method,
]
FETCHING = ("/thumbnail", "/export", "/export/manifest")
"""Where images are needed, which are in a Label Studio that is not there: then 503 is the answer described."""
WANTED = 10_000
SPOILT = 8
"""Variants that are sent of each generated body."""

Description = dict[str, Any]


def in_a_small_world(description: Description) -> Description:
    """The same, where messages are about the project that sends them, and about the few tasks and annotations there
    are; else nearly all that is allowed would be refused in the end."""
    small = deepcopy(description)
    schemas = small["components"]["schemas"]
    schemas["Id"]["maximum"] = 12
    schemas["Project"]["properties"]["id"] = {"const": 1}
    schemas["Time"] = {"enum": ["2026-11-15T23:55:43Z", "2026-12-24T12:00:00.5+01:00", "2999-01-01T00:00:00"]}
    for of in ("Task", "Annotation"):
        schemas[of]["properties"]["project"] = {"enum": [1, None]}
    return small


@pytest.fixture
def described(door: Door, settings: Settings) -> Description:
    answer = door.app.test_client().get("/openapi.json", headers=_shown(settings))
    return dict(answer.json)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", [3, pytest.param(165, marks=pytest.mark.slow)])
def test_generated_calls_of_label_studio_are_answered_as_described(
    door: Door, described: Description, number: int
) -> None:
    """Ten thousand payloads, and none ends in a fault or changes anything where it is refused."""

    def send(case: Case) -> None:
        answer = case.call(app=door.app, headers=HEADER)
        door.judge(answer.status_code, answer.text, f"{case.method} {case.path} {case.body!r}"[:2000])
        case.validate_response(answer, checks=CHECKS)
        for content in spoilt(answer.request.body):
            door.send(case.path, content, about=repr(content))

    thorough = number > 10
    small_world = in_a_small_world(described)
    for operation in (*calls(small_world), *(calls(described) if thorough else ())):
        read = "400" in operation.definition.raw["responses"]
        generate(operation, number if read else number // 10, send)
    for operation in calls(small_world) if thorough else ():
        for case in at_the_edges(operation):
            send(case)
    print(f"\n{door.sent.total()} generated payloads: {dict(door.sent)}")
    assert door.sent.total() >= (WANTED if thorough else 50)
    assert door.sent[200] > door.sent.total() // 20


@pytest.mark.slow
def test_generated_calls_of_anybody_else_are_answered_as_described(
    door: Door, described: Description, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "LONGEST_SECONDS", 0.0)  # a page that is followed would be sent for minutes

    def send(case: Case) -> None:
        answer = case.call(app=door.app, headers=_shown(settings))
        if case.method == "POST" and answer.status_code < 400:
            door.look_again()  # an admin's form was carried out
        assert door.is_untouched(), f"{case.method} {case.path} {case.body!r}"
        away = answer.status_code == 503 and case.path.endswith(FETCHING)
        case.validate_response(answer, checks=CHECKS[1:] if away else CHECKS)

    others = calls(described, of_label_studio=False)
    for operation in sorted(others, key=lambda operation: operation.path == "/login"):  # it gives up after wrong tokens
        generate(operation, 30, send)
        for case in at_the_edges(operation):
            send(case)


def calls(description: Description, *, of_label_studio: bool = True) -> Iterator[APIOperation]:
    for found in schemathesis.openapi.from_dict(description).get_all_operations():
        operation = found.ok()
        if (operation.definition.raw["security"] == LABEL_STUDIO) == of_label_studio:
            yield operation


def generate(operation: APIOperation, number: int, send: Callable[[Case], None]) -> None:
    """A third of it is forbidden: that takes longer to make up."""
    quiet = {"derandomize": True, "deadline": None, "suppress_health_check": list(HealthCheck)}
    for mode, count in ((GenerationMode.POSITIVE, 2 * number // 3), (GenerationMode.NEGATIVE, number // 3)):
        run = given(case=operation.as_strategy(generation_mode=mode))(lambda case: send(case))
        with suppress(Unsatisfiable):  # where there is nothing to send, nothing is forbidden
            examples(max_examples=count + 1, phases=[Phase.generate], **quiet)(run)()


def at_the_edges(operation: APIOperation) -> Iterator[Case]:
    """Each limit of the description met exactly and missed by one, each required field left out, other methods."""
    schema = operation.schema
    yield from schema.iter_coverage_cases(
        operation, generation_modes=list(GenerationMode), generation_config=schema.config.generation
    )


def spoilt(content: bytes | str | None) -> Iterator[bytes]:
    """Cut off, with a byte changed, and with junk or nothing in some places."""
    content = content.encode() if isinstance(content, str) else content or b""
    if not content:
        return
    chance = random.Random(zlib.crc32(content))  # noqa: S311
    yield content[: chance.randrange(len(content))]
    at = chance.randrange(len(content))
    yield content[:at] + bytes([chance.randrange(256)]) + content[at + 1 :]
    try:
        body = json.loads(content)
    except ValueError:
        return
    there = [place for place, _value in places(body)]
    for _ in range(SPOILT - 2 if there else 0):
        place = chance.choice(there)
        kind = chance.choice([None, *JUNK])
        yield as_sent(without(body, place) if kind is None else replaced(body, place, JUNK[kind]))


def _shown(settings: Settings) -> dict[str, str]:
    return {"Authorization": f"Bearer {admin_token(settings)}"}
