"""What Label Studio sends to a backend, parsed once at the door into typed objects."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeGuard

from studio.errors import BadMessage

LARGEST_ID = 2**63 - 1
"""The store has room for no larger one."""
MOST_ITEMS = 20_000
"""Label Studio cuts its lists at WEBHOOK_BATCH_SIZE, 5000 unless somebody changes it."""
DEEPEST = 64
"""Levels of lists and objects within each other; real messages have fewer than ten."""
YEARS = range(1970, 3000)


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


def read_json(content: bytes) -> Any:
    """The value that a request's body holds. Python reads more than JSON allows, such as NaN and UTF-16, and JSON
    allows numbers that no float holds; PostgreSQL keeps none of these, so they are refused here."""
    try:
        body = json.loads(content.decode(), parse_float=_finite, parse_constant=_finite)
    except RecursionError as error:
        raise BadMessage(_TOO_DEEP) from error
    except ValueError as error:
        raise BadMessage("the body is missing or not JSON in UTF-8") from error
    if content.count(b"[") + content.count(b"{") > DEEPEST and _is_deep(body):
        raise BadMessage(_TOO_DEEP)
    return body


def read_event(body: Any) -> Event:
    body = _object(body, "the body")
    action = body.get("action")
    if not isinstance(action, str):
        raise BadMessage("'action' is missing or not a text")
    project_id = _id(_object(body.get("project"), "'project'"), "project.id")
    event = Event(action=action, project_id=project_id)
    if action in ("ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATION_UPDATED"):
        annotations = _of_project(project_id, _one_or_many(body.get("annotation"), "annotation"), "annotation")
        event.annotations.extend(read_annotation(annotation) for annotation in annotations)
        event.tasks.update(_tasks(_of_project(project_id, _one_or_many(body.get("task"), "task"), "task")))
    elif action == "TASKS_CREATED":
        event.tasks.update(_tasks(_of_project(project_id, _one_or_many(body.get("tasks"), "tasks"), "tasks[]")))
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
        if task.get("id") is not None:
            _id(task, "tasks[].id")
    return PredictionRequest(tasks=tasks)


def read_annotation(body: Any, *, task_id: int | None = None) -> Annotation:
    body = _object(body, "annotation")
    result = body.get("result")
    if not isinstance(result, list):
        raise BadMessage("annotation.result is missing or not a list")
    created_at = _moment(body.get("created_at"), "annotation.created_at")
    updated_at = body.get("updated_at")
    return Annotation(
        id=_id(body, "annotation.id"),
        task_id=task_id if task_id is not None else _id({"id": body.get("task")}, "annotation.task"),
        result=result,
        skipped=_flag(body.get("was_cancelled"), "annotation.was_cancelled"),
        ground_truth=_flag(body.get("ground_truth"), "annotation.ground_truth"),
        annotator=_annotator(body.get("completed_by")),
        created_at=created_at,
        updated_at=created_at if updated_at is None else _moment(updated_at, "annotation.updated_at"),
        came_along=body.get("import_id") is not None or body.get("lead_time") is None,
    )


def _tasks(bodies: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    return {_id(task, "task.id"): _object(task.get("data"), "task.data") for task in bodies}


def _of_project(project_id: int, bodies: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """The same bodies: a task of another project in this one's pool could never be published."""
    for body in bodies:
        if body.get("project") is not None and _id({"id": body["project"]}, f"{name}.project") != project_id:
            raise BadMessage(f"{name}.project is not the project.id of the message")
    return bodies


def _one_or_many(value: Any, name: str) -> list[dict[str, Any]]:
    """ANNOTATIONS_CREATED carries lists under the singular names."""
    values = value if isinstance(value, list) else [value]
    if len(values) > MOST_ITEMS:
        raise BadMessage(f"'{name}' has {len(values)} items; {MOST_ITEMS} are the most")
    return [_object(item, f"'{name}'") for item in values]


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadMessage(f"{name} is missing or not an object")
    return value


def _id(body: Mapping[str, Any], name: str) -> int:
    value = body.get("id")
    if not _is_id(value):
        raise BadMessage(f"{name} is missing or not a whole number from 1 to {LARGEST_ID}")
    return value


def _is_id(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= LARGEST_ID


def _flag(value: Any, name: str) -> bool:
    """No text: the one that says "false" would count as true."""
    if value is not None and not isinstance(value, bool):
        raise BadMessage(f"{name} is neither true nor false")
    return bool(value)


def _annotator(value: Any) -> int | None:
    """A user id in webhooks, an object with one in task listings. A label without an annotator is a label all the
    same, so nothing is refused here."""
    if isinstance(value, dict):
        value = value.get("id")
    return value if _is_id(value) else None


def _moment(value: Any, name: str) -> datetime:
    """In UTC. The first and the last days of the calendar have no time in every zone, so far years are refused."""
    if not isinstance(value, str):
        raise BadMessage(f"{name} is missing or not a time")
    try:
        moment = datetime.fromisoformat(value)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise BadMessage(f"{name} is not an ISO time") from error
    if moment.year not in YEARS:
        raise BadMessage(f"{name} is not a time of the years {YEARS[0]} to {YEARS[-1]}")
    return moment


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise BadMessage("the body holds a number that is not finite")
    return number


def _is_deep(body: Any) -> bool:
    level = [body]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return True


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


_TOO_DEEP = f"the body has more than {DEEPEST} levels of lists and objects within each other"
