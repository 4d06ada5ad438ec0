"""What Label Studio calls on an ML backend. All but /predict answer in milliseconds, whatever the workers do."""

from __future__ import annotations

import logging
from typing import Any

from flask import Blueprint, current_app, request
from werkzeug.exceptions import UnsupportedMediaType

from backend.access import calling_project
from backend.later import Later
from backend.predictors import Predictors
from jobs import intake
from jobs.versions import UNTRAINED
from jobs.workplace import Workplace
from store import rounds
from store.tables import Project
from studio.errors import BadMessage
from studio.messages import read_event, read_json, read_prediction_request

log = logging.getLogger(__name__)
contract = Blueprint("contract", __name__)


@contract.get("/health")
def health() -> tuple[dict[str, Any], int]:
    report = current_app.extensions["health"].report()
    return report.as_dict(), report.status


@contract.post("/setup")
def setup() -> dict[str, str]:
    project = calling_project(request)
    return {"model_version": _current_version(project)}


@contract.get("/versions")
def versions() -> dict[str, list[str]]:
    project = calling_project(request)
    with _place().store.read() as session:
        trained = list(rounds.versions(session, project))
    return {"versions": trained[::-1] or [UNTRAINED]}


@contract.post("/predict")
def predict() -> dict[str, list[dict[str, Any]]]:
    """One result per task, in the tasks' order: with any other number Label Studio stores nothing at all."""
    project = calling_project(request)
    asked = read_prediction_request(_body())
    predictors: Predictors = current_app.extensions["predictors"]
    return {"results": predictors.of(project, _current_version(project)).predict(asked.tasks)}


@contract.post("/webhook")
def webhook() -> dict[str, Any] | Later:
    """Says that it is stored, once it is: what a web server does for many of them at once (`backend.web_worker`)."""
    project = calling_project(request)
    event = read_event(_body())
    if event.project_id != project.studio_id:
        raise BadMessage(f"the secret is project {project.studio_id}'s, but the event is about {event.project_id}")
    if event.action == "START_TRAINING":
        jobs = intake.start_training(_place(), project.id)
        return {"status": "on its way", "job": jobs[0]} if jobs else {"status": "no new labels to train on"}
    return Later({"status": "ok"}, current_app.extensions["intake"].announce(project.id, event))


def _place() -> Workplace:
    place: Workplace = current_app.extensions["workplace"]
    return place


def _body() -> Any:
    if not request.is_json or request.headers.get("Content-Encoding", "identity") != "identity":
        raise UnsupportedMediaType("the body must have Content-Type: application/json and no Content-Encoding")
    content = request.get_data(cache=False)
    if request.content_length not in (None, len(content)):
        raise BadMessage("the body is shorter than its Content-Length")
    return read_json(content)


def _current_version(project: Project) -> str:
    with _place().store.read() as session:
        model = rounds.current_model(session, project)
    return model.version if model else UNTRAINED
