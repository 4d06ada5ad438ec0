"""The contract with Label Studio, against every request a real 1.23.2 server was recorded sending."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import select
from werkzeug.test import TestResponse

from store import pool, rounds
from store.database import Store
from store.tables import Label, Project, RoundState, Task
from tests.conftest import add_round, make_project

CAPTURES = Path(__file__).parent.parent / "captures"
RECORDED = [
    pytest.param(request, id=f"{path.stem}-{n}")
    for path in sorted(CAPTURES.glob("*.json"))
    for n, request in enumerate(json.loads(path.read_text())["requests"])
]
BASIC = {"Authorization": "Basic " + base64.b64encode(b"label-studio:s3cret").decode()}
HEADER = {"X-IWeS-Secret": "s3cret"}


def capture(name: str, number: int = 0) -> dict[str, Any]:
    return dict(json.loads((CAPTURES / f"{name}.json").read_text())["requests"][number])


@pytest.fixture
def project(store: Store) -> Project:
    """The project of the captures: cat, dog or bird in <Choices name="cls">, 200 tasks, a round of tasks 1-8 open."""
    project = make_project(store, tasks=200, control="cls", target="img", classes=["cat", "dog", "bird"])
    add_round(store, project, 0, [1, 2, 3, 4, 5, 6, 7, 8], wanted=8)
    return project


def replay(client: FlaskClient, request: dict[str, Any], headers: dict[str, str]) -> TestResponse:
    return client.open(request["path"], method=request["method"], json=request["body"], headers=headers)


@pytest.mark.parametrize("request_", RECORDED)
def test_every_recorded_request_is_answered(client: FlaskClient, project: Project, request_: dict[str, Any]) -> None:
    headers = HEADER if request_["path"] == "/webhook" and "Authorization" not in request_["headers"] else BASIC
    answer = replay(client, request_, headers)
    assert answer.status_code == 200, answer.text
    assert isinstance(answer.json, dict)


@pytest.mark.parametrize("request_", RECORDED)
def test_no_recorded_request_passes_without_the_secret(
    client: FlaskClient, project: Project, store: Store, request_: dict[str, Any]
) -> None:
    if request_["path"] == "/health":
        return
    for headers in ({}, {"X-IWeS-Secret": "wrong"}, {"Authorization": "Basic " + base64.b64encode(b"a:").decode()}):
        assert replay(client, request_, headers).status_code == 401
    with store.read() as session:
        assert session.scalar(select(Label)) is None


def test_health_tells_which_backend_it_is(client: FlaskClient) -> None:
    answer = client.get("/health").json
    assert (answer["status"], answer["model_class"]) == ("UP", "IWeS")


def test_setup_and_versions_name_the_untrained_model(client: FlaskClient, project: Project) -> None:
    assert replay(client, capture("setup"), BASIC).json == {"model_version": "iwes-untrained"}
    assert client.get("/versions", headers=BASIC).json == {"versions": ["iwes-untrained"]}


def test_predict_answers_one_result_per_task_in_order(client: FlaskClient, project: Project) -> None:
    request = next(
        r.values[0] for r in RECORDED if r.values[0]["path"] == "/predict" and len(r.values[0]["body"]["tasks"]) > 1
    )
    results = replay(client, request, BASIC).json["results"]
    assert len(results) == len(request["body"]["tasks"])
    assert all(set(result) == {"result", "score", "model_version"} for result in results)


def test_a_submitted_annotation_becomes_a_label_of_its_draw(
    client: FlaskClient, project: Project, store: Store
) -> None:
    assert replay(client, capture("webhook_ANNOTATION_CREATED"), HEADER).status_code == 200
    with store.read() as session:
        label = session.scalars(select(Label)).one()
        assert (label.annotation_id, label.class_name, label.annotator, label.skipped) == (1, "cat", 1, False)
        assert label.draw is not None
        assert label.task.studio_id == 1


def test_the_list_valued_event_brings_every_label(client: FlaskClient, project: Project, store: Store) -> None:
    request = capture("webhook_ANNOTATIONS_CREATED")
    assert replay(client, request, HEADER).status_code == 200
    sent = {a["id"]: a["task"] for a in request["body"]["annotation"]}
    with store.read() as session:
        assert {label.annotation_id: label.task.studio_id for label in session.scalars(select(Label))} == sent


def test_a_skip_is_no_label(client: FlaskClient, project: Project, store: Store) -> None:
    replay(client, capture("webhook_ANNOTATION_CREATED_skipped"), HEADER)
    with store.read() as session:
        label = session.scalars(select(Label)).one()
        assert label.skipped
        assert label.class_name is None
        assert label.problem is None


def test_a_deletion_names_no_task_and_still_finds_its_label(
    client: FlaskClient, project: Project, store: Store
) -> None:
    created, deleted = capture("webhook_ANNOTATION_CREATED"), capture("webhook_ANNOTATIONS_DELETED_single")
    created["body"]["annotation"]["id"] = deleted["body"]["annotations"][0]["id"]
    replay(client, created, HEADER)
    replay(client, deleted, HEADER)
    with store.read() as session:
        assert session.scalars(select(Label)).one().deleted


def test_an_update_changes_the_label(client: FlaskClient, project: Project, store: Store) -> None:
    updated = capture("webhook_ANNOTATION_UPDATED")
    replay(client, updated, HEADER)
    body = updated["body"]["annotation"]
    body["result"][0]["value"]["choices"] = ["bird"]
    body["updated_at"] = "2027-01-01T00:00:00Z"
    replay(client, updated, HEADER)
    with store.read() as session:
        assert session.scalars(select(Label)).one().class_name == "bird"


def test_created_and_deleted_tasks_are_mirrored(client: FlaskClient, project: Project, store: Store) -> None:
    created = capture("webhook_TASKS_CREATED")
    for task in created["body"]["tasks"]:
        task["id"] += 1000
    replay(client, created, HEADER)
    deleted = capture("webhook_TASKS_DELETED_bulk")
    gone = {task["id"] for task in deleted["body"]["tasks"]}
    replay(client, deleted, HEADER)
    with store.read() as session:
        known = pool.known_ids(session, project)
    assert {task["id"] for task in created["body"]["tasks"]} <= known
    assert not gone & known


def test_start_training_closes_the_round_early_and_names_the_job(
    client: FlaskClient, project: Project, store: Store
) -> None:
    start = capture("webhook_START_TRAINING")
    assert replay(client, start, BASIC).json == {"status": "no new labels to train on"}
    replay(client, capture("webhook_ANNOTATION_CREATED"), HEADER)
    expected = {"status": "on its way", "job": f"project-{project.id}-round-0-train"}
    assert replay(client, start, BASIC).json == expected
    assert replay(client, start, BASIC).json == expected
    with store.read() as session:
        last = rounds.latest(session, project)
        assert last is not None
        assert last.state == RoundState.CLOSED


def test_a_label_is_kept_although_redis_is_away(client: FlaskClient, project: Project, store: Store) -> None:
    """The app of these tests has no Redis behind it: the round closes, and training stays due in the store."""
    request = capture("webhook_ANNOTATION_CREATED")
    for n in range(1, 9):
        request["body"]["annotation"] |= {"id": n, "task": n}
        request["body"]["task"] |= {"id": n}
        assert replay(client, request, HEADER).status_code == 200
    with store.read() as session:
        assert rounds.by_number(session, project, 0).state == RoundState.CLOSED


def test_an_unknown_class_is_reported_and_not_trained_on(client: FlaskClient, project: Project, store: Store) -> None:
    request = capture("webhook_ANNOTATION_CREATED")
    request["body"]["annotation"]["result"][0]["value"]["choices"] = ["unicorn"]
    assert replay(client, request, HEADER).status_code == 200
    with store.read() as session:
        label = session.scalars(select(Label)).one()
        assert label.class_name is None
        assert "unicorn" in str(label.problem)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"action": None}, "'action'"),
        ({"project": None}, "'project'"),
        ({"project": {"id": "1"}}, "project.id"),
        ({"annotation": None}, "'annotation'"),
        ({"annotation": {"id": 1, "task": 1, "result": "x"}}, "annotation.result"),
        ({"annotation": {"id": 1, "task": 1, "result": [], "created_at": "soon"}}, "annotation.created_at"),
        ({"annotation": {"id": True, "task": 1, "result": [], "created_at": "2026-01-01T00:00:00Z"}}, "annotation.id"),
        ({"task": {"id": 1, "data": []}}, "task.data"),
    ],
)
def test_a_wrong_message_is_refused_by_the_name_of_its_field_and_changes_nothing(
    client: FlaskClient, project: Project, store: Store, change: dict[str, Any], field: str
) -> None:
    body = capture("webhook_ANNOTATION_CREATED")["body"] | change
    answer = client.post("/webhook", json=body, headers=HEADER)
    assert answer.status_code == 400
    assert field in answer.json["error"]
    with store.read() as session:
        assert session.scalar(select(Label)) is None
        assert len(list(session.scalars(select(Task)))) == 200


def test_no_json_at_all_is_refused(client: FlaskClient, project: Project) -> None:
    for path in ("/webhook", "/predict"):
        answer = client.post(path, data=b"\xff{", headers=HEADER, content_type="application/json")
        assert answer.status_code == 400
        assert "not JSON" in answer.json["error"]


def test_a_secret_speaks_for_its_own_project_alone(client: FlaskClient, project: Project, store: Store) -> None:
    make_project(store, studio_id=2, secret="another")
    answer = replay(client, capture("webhook_ANNOTATION_CREATED"), {"X-IWeS-Secret": "another"})
    assert answer.status_code == 400
    with store.read() as session:
        assert session.scalar(select(Label)) is None


def test_an_address_that_does_not_exist_is_a_plain_404(client: FlaskClient) -> None:
    answer = client.get("/nothing")
    assert answer.status_code == 404
    assert "error" in answer.json
