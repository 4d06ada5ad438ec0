"""What Label Studio sends to a backend, parsed once at the door into typed objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from studio.errors import BadMessage


@dataclass(frozen=True)
class Annotation:
    id: int
    task_id: int
    result: list[Any]
    skipped: bool
    ground_truth: bool
    annotator: int | None
    created_at: datetime
    updated_at: datetime
    came_along: bool = False
    """Whether it looks imported together with its task: with the id it had elsewhere, or without the time that a
    person's work on it took. Label Studio itself does not say."""


@dataclass(frozen=True)
class Event:
    """One webhook call. Which of the lists are filled depends on the action; unknown actions fill none."""

    action: str
    project_id: int
    annotations: list[Annotation] = field(default_factory=list)
    tasks: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Task data by id, where the event carries it."""
    deleted_annotations: list[int] = field(default_factory=list)
    deleted_tasks: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class PredictionRequest:
    tasks: list[dict[str, Any]]


def read_event(body: Any) -> Event:
    body = _object(body, "the body")
    action = body.get("action")
    if not isinstance(action, str):
        raise BadMessage("'action' is missing or not a text")
    project_id = _id(_object(body.get("project"), "'project'"), "project.id")
    event = Event(action=action, project_id=project_id)
    if action in ("ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATION_UPDATED"):
        event.annotations.extend(read_annotation(a) for a in _one_or_many(body.get("annotation"), "annotation"))
        event.tasks.update(_tasks(_one_or_many(body.get("task"), "task")))
    elif action == "TASKS_CREATED":
        event.tasks.update(_tasks(_one_or_many(body.get("tasks"), "tasks")))
    elif action == "ANNOTATIONS_DELETED":
        event.deleted_annotations.extend(
            _id(a, "annotations[].id") for a in _one_or_many(body.get("annotations"), "annotations")
        )
    elif action == "TASKS_DELETED":
        event.deleted_tasks.extend(_id(t, "tasks[].id") for t in _one_or_many(body.get("tasks"), "tasks"))
    return event


def read_prediction_request(body: Any) -> PredictionRequest:
    tasks = _object(body, "the body").get("tasks")
    if not isinstance(tasks, list):
        raise BadMessage("'tasks' is missing or not a list")
    for task in tasks:
        _object(_object(task, "tasks[]").get("data"), "tasks[].data")
    return PredictionRequest(tasks=tasks)


def read_annotation(body: Any, *, task_id: int | None = None) -> Annotation:
    body = _object(body, "annotation")
    result = body.get("result")
    if not isinstance(result, list):
        raise BadMessage("annotation.result is missing or not a list")
    created_at = _moment(body.get("created_at"), "annotation.created_at")
    return Annotation(
        id=_id(body, "annotation.id"),
        task_id=task_id if task_id is not None else _id({"id": body.get("task")}, "annotation.task"),
        result=result,
        skipped=bool(body.get("was_cancelled")),
        ground_truth=bool(body.get("ground_truth")),
        annotator=_annotator(body.get("completed_by")),
        created_at=created_at,
        updated_at=_moment(body.get("updated_at"), "annotation.updated_at") if body.get("updated_at") else created_at,
        came_along=body.get("import_id") is not None or body.get("lead_time") is None,
    )


def _tasks(bodies: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    return {_id(task, "task.id"): _object(task.get("data"), "task.data") for task in bodies}


def _one_or_many(value: Any, name: str) -> list[dict[str, Any]]:
    """ANNOTATIONS_CREATED carries lists under the singular names."""
    values = value if isinstance(value, list) else [value]
    return [_object(item, f"'{name}'") for item in values]


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadMessage(f"{name} is missing or not an object")
    return value


def _id(body: Mapping[str, Any], name: str) -> int:
    value = body.get("id")
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 2**63:
        raise BadMessage(f"{name} is missing or not a positive whole number")
    return value


def _annotator(value: Any) -> int | None:
    """A user id in webhooks, an object with one in task listings."""
    if isinstance(value, dict):
        value = value.get("id")
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _moment(value: Any, name: str) -> datetime:
    if not isinstance(value, str):
        raise BadMessage(f"{name} is missing or not a time")
    try:
        moment = datetime.fromisoformat(value)
    except ValueError as error:
        raise BadMessage(f"{name} is {value[:40]!r}, not an ISO time") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
