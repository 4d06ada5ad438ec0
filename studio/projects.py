"""A project in Label Studio: its settings, tasks, annotations and weights."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from studio.client import Client
from studio.errors import BadMessage, NotFound, NotLabelStudio
from studio.messages import Annotation, read_annotation

log = logging.getLogger(__name__)

PAGE = 1000
ASKED = 400
"""Tasks named one by one in an address, which servers in between may cut at eight thousand characters."""
LAST_ID = 2**31 - 1
MOMENT = "%Y-%m-%dT%H:%M:%S.%fZ"
"""The one way to write a time that Label Studio's filters understand; any other is a server error."""


@dataclass(frozen=True)
class ProjectSettings:
    id: int
    title: str
    label_config: str
    sampling: str
    maximum_annotations: int
    model_version: str | None


@dataclass(frozen=True)
class StudioTask:
    id: int
    data: dict[str, Any]
    annotations: int
    """How many annotations it carries, skips included."""


class StudioProject:
    def __init__(self, client: Client, project_id: int) -> None:
        self.client = client
        self.id = project_id

    def settings(self) -> ProjectSettings:
        try:
            body = self.client.get(f"/api/projects/{self.id}/")
        except NotFound as error:
            raise NotFound(f"there is no project {self.id} on {self.client.url}; {self._known()}") from error
        try:
            return ProjectSettings(
                id=body["id"],
                title=body["title"],
                label_config=body["label_config"],
                sampling=body["sampling"],
                maximum_annotations=body["maximum_annotations"],
                model_version=body["model_version"] or None,
            )
        except (KeyError, TypeError) as error:
            raise NotLabelStudio(
                f"{self.client.url} answers, but not as Label Studio does; check the address"
            ) from error

    def change(self, **settings: Any) -> None:
        self.client.patch(f"/api/projects/{self.id}/", settings)

    def moment(self) -> datetime:
        """What time it is by Label Studio's own clock, which stamps its changes; by ours where it does not say."""
        stamp = self.client.request("GET", "/api/version").headers.get("Date", "")
        try:
            return parsedate_to_datetime(stamp).astimezone(UTC)
        except ValueError:
            return datetime.now(UTC)

    def tasks(
        self, *, since: datetime | None = None, first: int = 1, last: int = LAST_ID
    ) -> Iterator[list[StudioTask]]:
        """Tasks page by page in ascending id: all of them, those of a range of ids, or those that changed since a
        moment. An annotation made, changed or deleted changes its task, an entry of a queue does not. Named fields
        only: the default ones cost eight times as much."""
        changed = [] if since is None else [_where("updated_at", "greater", "Datetime", since.strftime(MOMENT))]
        while True:
            items = [_where("id", "in", "Number", {"min": first, "max": last}), *changed]
            body = self._listed(items, include="id,data,total_annotations,cancelled_annotations")
            found = [
                StudioTask(t["id"], t["data"], t["total_annotations"] + t["cancelled_annotations"])
                for t in body["tasks"]
            ]
            if found:
                yield found
            if not found or len(found) >= body["total"]:
                return
            first = found[-1].id + 1  # not the next page's number: a deletion in between would shift the pages

    def census(self, first: int = 1, last: int = LAST_ID) -> tuple[int, int]:
        """How many tasks there are in a range of ids, and how many annotations on them, skips not counted."""
        body = self._listed([_where("id", "in", "Number", {"min": first, "max": last})], page_size=1, include="id")
        return int(body["total"]), int(body["total_annotations"])

    def annotations_of(self, task_ids: Sequence[int]) -> Iterator[dict[int, list[Annotation]]]:
        """The annotations of some tasks, skips included, some hundred tasks at a time. One that cannot be read is left
        out: it must not keep the others from being found."""
        for page in self._selected(task_ids, fields="all"):
            yield {task["id"]: _readable(task) for task in page}

    def has_annotation(self, annotation_id: int) -> bool:
        try:
            self.client.get(f"/api/annotations/{annotation_id}/")
        except NotFound:
            return False
        return True

    def data_of(self, task_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
        """The data of some tasks; a task that is not in the answer no longer exists."""
        pages = self._selected(task_ids, include="id,data")
        return {task["id"]: task["data"] for page in pages for task in page}

    def predictions_of(self, task_ids: Sequence[int]) -> dict[int, list[dict[str, Any]]]:
        pages = self._selected(task_ids, fields="all")
        return {task["id"]: task["predictions"] for page in pages for task in page}

    def replace_data(self, task_id: int, data: Mapping[str, Any]) -> dict[str, Any]:
        """Writes a task's data and returns what is stored. A PATCH replaces the whole object, unchecked: hand over
        everything `data_of` gave, or the address of the image is lost."""
        return dict(self.client.patch(f"/api/tasks/{task_id}/", {"data": data})["data"])

    def _selected(self, task_ids: Sequence[int], **params: Any) -> Iterator[list[dict[str, Any]]]:
        for start in range(0, len(task_ids), ASKED):
            some = list(task_ids[start : start + ASKED])
            query = json.dumps({"selectedItems": {"all": False, "included": some}})
            yield self._page(query=query, page_size=ASKED, **params)["tasks"]

    def _listed(self, items: list[dict[str, Any]], *, page_size: int = PAGE, **params: Any) -> dict[str, Any]:
        query = json.dumps({"filters": {"conjunction": "and", "items": items}, "ordering": ["tasks:id"]})
        return self._page(query=query, page_size=page_size, **params)

    def _page(self, **params: Any) -> dict[str, Any]:
        """Always unresolved: data with signed file addresses must never be written back, for those expire."""
        return dict(self.client.get("/api/tasks", project=self.id, page=1, resolve_uri="false", **params))

    def _known(self) -> str:
        names = [f"{p['id']} ({p['title']})" for p in self.client.get("/api/projects/", page_size=20)["results"]]
        return f"there are: {', '.join(names)}" if names else "there is none yet"


def _where(field: str, operator: str, kind: str, value: Any) -> dict[str, Any]:
    return {"filter": f"filter:tasks:{field}", "operator": operator, "type": kind, "value": value}


def _readable(task: dict[str, Any]) -> list[Annotation]:
    found = []
    for body in task["annotations"]:
        try:
            found.append(read_annotation(body, task_id=task["id"]))
        except BadMessage as error:
            log.warning("an annotation of task %s is left out: %s", task["id"], error)
    return found
