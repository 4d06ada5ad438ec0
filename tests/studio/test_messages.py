"""What Label Studio sends becomes typed objects; what it never sends is refused by the name of its field."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from studio.errors import BadMessage
from studio.messages import DEEPEST, Event, read_annotation, read_event, read_json, read_prediction_request

ANNOTATION = {"id": 5, "task": 7, "result": [], "created_at": "2026-01-02T03:04:05Z", "lead_time": 1.5}
ABOUT = {"action": "ANNOTATION_CREATED", "project": {"id": 1}}


def test_an_event_with_one_annotation_and_one_with_a_list_read_alike() -> None:
    task = {"id": 7, "data": {"image": "x"}}
    one = read_event(ABOUT | {"annotation": ANNOTATION, "task": task})
    many = read_event(ABOUT | {"annotation": [ANNOTATION], "task": [task]})
    assert one == many
    assert (one.annotations[0].id, one.annotations[0].task_id, one.tasks) == (5, 7, {7: {"image": "x"}})


def test_an_action_that_is_not_known_says_nothing() -> None:
    event = read_event({"action": "LABEL_LINK_CREATED", "project": {"id": 1}, "tasks": "whatever"})
    assert event == Event("LABEL_LINK_CREATED", 1)


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05.250000+02:30", datetime(2026, 1, 2, 0, 34, 5, 250000, tzinfo=UTC)),
        ("2026-01-02T03:04:05", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("1970-01-01T00:00:00Z", datetime(1970, 1, 1, tzinfo=UTC)),
        ("2999-12-31T23:59:59Z", datetime(2999, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ],
)
def test_a_time_is_read_into_utc(written: str, moment: datetime) -> None:
    annotation = read_annotation(ANNOTATION | {"created_at": written})
    assert annotation.created_at == annotation.updated_at == moment
    assert annotation.created_at.tzinfo is UTC


@pytest.mark.parametrize(
    "written",
    ["0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "1969-12-31", "3000-01-01", "yesterday", "", 1, None],
)
def test_a_time_that_a_database_could_not_keep_is_refused(written: Any) -> None:
    with pytest.raises(BadMessage, match=r"^annotation\.created_at is"):
        read_annotation(ANNOTATION | {"created_at": written})
    if written is not None:
        with pytest.raises(BadMessage, match=r"^annotation\.updated_at is"):
            read_annotation(ANNOTATION | {"updated_at": written})


def test_a_text_that_says_false_is_not_taken_for_true() -> None:
    for flag in ("was_cancelled", "ground_truth"):
        with pytest.raises(BadMessage, match=f"^annotation.{flag} is neither true nor false"):
            read_annotation(ANNOTATION | {flag: "false"})
    taken = read_annotation(ANNOTATION | {"was_cancelled": True, "ground_truth": None})
    assert (taken.skipped, taken.ground_truth) == (True, False)


@pytest.mark.parametrize(
    ("said", "annotator"), [(3, 3), ({"id": 3}, 3), (None, None), ("3", None), (True, None), (2**63, None), ({}, None)]
)
def test_an_annotator_who_is_not_known_costs_no_label(said: Any, annotator: int | None) -> None:
    assert read_annotation(ANNOTATION | {"completed_by": said}).annotator == annotator


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"annotation": ANNOTATION | {"project": 2}, "task": []}, "annotation.project"),
        ({"annotation": [], "task": {"id": 7, "data": {}, "project": 2}}, "task.project"),
        ({"action": "TASKS_CREATED", "tasks": [{"id": 7, "data": {}, "project": 2}]}, "tasks[].project"),
    ],
)
def test_what_belongs_to_another_project_is_refused(body: dict[str, Any], field: str) -> None:
    with pytest.raises(BadMessage) as refused:
        read_event(ABOUT | body)
    assert str(refused.value) == f"{field} is not the project.id of the message"


def test_a_task_to_predict_needs_no_id_but_no_wrong_one() -> None:
    tasks = [{"data": {}}, {"id": None, "data": {}}, {"id": 2**63 - 1, "data": {}}]
    assert read_prediction_request({"tasks": tasks}).tasks == tasks
    for wrong in ("abc", 0, 2**63, [1]):
        with pytest.raises(BadMessage, match=r"^tasks\[\]\.id is"):
            read_prediction_request({"tasks": [{"id": wrong, "data": {}}]})


def test_a_body_is_read_as_json() -> None:
    body = {"ä": [1, 2.5, -0.0, 10**30, None, True, "\ud800", "\0"]}
    assert read_json(json.dumps(body).encode()) == body
    assert read_json('{"ä": 1}'.encode()) == {"ä": 1}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the body is missing or not JSON in UTF-8"),
        (b"{", "the body is missing or not JSON in UTF-8"),
        ('"ä"'.encode("latin-1"), "the body is missing or not JSON in UTF-8"),
        ('"a"'.encode("utf-16"), "the body is missing or not JSON in UTF-8"),
        (b"9" * 5000, "the body is missing or not JSON in UTF-8"),
        (b"[NaN]", "the body holds a number that is not finite"),
        (b"[-Infinity]", "the body holds a number that is not finite"),
        (b"[1e999]", "the body holds a number that is not finite"),
        (b"[" * 100_000, "the body has more than 64 levels of lists and objects within each other"),
    ],
    ids=lambda value: repr(value[:20]),
)
def test_a_body_that_no_database_could_keep_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(BadMessage, match=said):
        read_json(content)


def test_a_body_may_be_so_deep_and_no_deeper() -> None:
    assert read_json(b"[" * DEEPEST + b"]" * DEEPEST)
    with pytest.raises(BadMessage, match="more than 64 levels"):
        read_json(b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1))
