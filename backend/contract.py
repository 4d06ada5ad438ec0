"""What Label Studio calls on an ML backend. All but /predict answer in milliseconds, whatever the workers do."""

from __future__ import annotations

import logging
from typing import Any

from flask import Blueprint, current_app, request

from backend.access import calling_project
from backend.predictors import Predictors
from jobs import intake
from jobs.versions import UNTRAINED
from jobs.workplace import Workplace
from store import rounds
from store.tables import Project
from studio.errors import BadMessage
from studio.messages import read_event, read_prediction_request

log = logging.getLogger(__name__)
contract = Blueprint("contract", __name__)


@contract.get("/")
@contract.get("/health")
def health() -> dict[str, str]:
    return {"status": "UP", "model_class": "IWeS"}


@contract.post("/setup")
def setup() -> dict[str, str]:
    project = calling_project(_place(), request)
    return {"model_version": _current_version(project)}


@contract.get("/versions")
def versions() -> dict[str, list[str]]:
    project = calling_project(_place(), request)
    with _place().store.read() as session:
        trained = list(rounds.versions(session, project))
    return {"versions": trained[::-1] or [UNTRAINED]}


@contract.post("/predict")
def predict() -> dict[str, list[dict[str, Any]]]:
    """One result per task, in the tasks' order: with any other number Label Studio stores nothing at all."""
    project = calling_project(_place(), request)
    asked = read_prediction_request(_body())
    predictors: Predictors = current_app.extensions["predictors"]
    return {"results": predictors.of(project, _current_version(project)).predict(asked.tasks)}


@contract.post("/webhook")
def webhook() -> tuple[dict[str, Any], int]:
    project = calling_project(_place(), request)
    event = read_event(_body())
    if event.project_id != project.studio_id:
        raise BadMessage(f"the secret is project {project.studio_id}'s, but the event is about {event.project_id}")
    if event.action == "START_TRAINING":
        jobs = intake.start_training(_place(), project.id)
        status = "on its way" if jobs else "no new labels to train on"
    else:
        jobs = intake.take(_place(), project.id, event)
        status = "ok"
    return {"status": status, **({"job": jobs[0]} if jobs else {})}, 200


def _place() -> Workplace:
    place: Workplace = current_app.extensions["workplace"]
    return place


def _body() -> Any:
    body = request.get_json(silent=True)
    if body is None:
        raise BadMessage("the body is missing or not JSON")
    return body


def _current_version(project: Project) -> str:
    with _place().store.read() as session:
        model = rounds.current_model(session, project)
    return model.version if model else UNTRAINED
