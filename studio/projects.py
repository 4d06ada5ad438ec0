"""A project in Label Studio: its settings, tasks, annotations and weights."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from studio.client import Client
from studio.errors import NotFound, NotLabelStudio
from studio.messages import Annotation, read_annotation

PAGE = 1000


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

    def tasks(self) -> Iterator[list[StudioTask]]:
        """All tasks, page by page in ascending id. Named fields only: the default ones cost eight times as much."""
        fields = "id,data,total_annotations,cancelled_annotations"
        for page in self._pages(include=fields):
            yield [StudioTask(t["id"], t["data"], t["total_annotations"] + t["cancelled_annotations"]) for t in page]

    def annotations(self) -> Iterator[list[tuple[StudioTask, list[Annotation]]]]:
        """The annotated tasks with their annotations, page by page; skips are annotations too."""
        carrying = {
            "filters": {
                "conjunction": "or",
                "items": [
                    {"filter": f"filter:tasks:{count}", "operator": "greater", "type": "Number", "value": 0}
                    for count in ("total_annotations", "cancelled_annotations")
                ],
            }
        }
        for page in self._pages(fields="all", query=json.dumps(carrying)):
            yield [
                (
                    StudioTask(t["id"], t["data"], len(t["annotations"])),
                    [read_annotation(a, task_id=t["id"]) for a in t["annotations"]],
                )
                for t in page
            ]

    def has_annotation(self, annotation_id: int) -> bool:
        try:
            self.client.get(f"/api/annotations/{annotation_id}/")
        except NotFound:
            return False
        return True

    def data_of(self, task_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
        """The data of some tasks; a task that is not in the answer no longer exists."""
        found: dict[int, dict[str, Any]] = {}
        for start in range(0, len(task_ids), PAGE):
            some = list(task_ids[start : start + PAGE])
            query = json.dumps({"selectedItems": {"all": False, "included": some}})
            for page in self._pages(include="id,data", query=query):
                found |= {task["id"]: task["data"] for task in page}
        return found

    def replace_data(self, task_id: int, data: Mapping[str, Any]) -> dict[str, Any]:
        """Writes a task's data and returns what is stored. A PATCH replaces the whole object, unchecked: hand over
        everything `data_of` gave, or the address of the image is lost."""
        return dict(self.client.patch(f"/api/tasks/{task_id}/", {"data": data})["data"])

    def _pages(self, **params: Any) -> Iterator[list[dict[str, Any]]]:
        """Always unresolved: data with signed file addresses must never be written back, for those expire."""
        page, seen = 1, 0
        while True:
            try:
                body = self.client.get(
                    "/api/tasks", project=self.id, page=page, page_size=PAGE, resolve_uri="false", **params
                )
            except NotFound:
                if page == 1:
                    raise  # the project itself is gone, which is not the same as empty
                return  # a page past the end; tasks were deleted while we read
            yield body["tasks"]
            seen += len(body["tasks"])
            if not body["tasks"] or seen >= body["total"]:
                return
            page += 1

    def _known(self) -> str:
        names = [f"{p['id']} ({p['title']})" for p in self.client.get("/api/projects/", page_size=20)["results"]]
        return f"there are: {', '.join(names)}" if names else "there is none yet"
