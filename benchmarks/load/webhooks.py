"""The webhook that a real Label Studio sent for a new annotation, over and over, each time about another annotation.

Numbers keep their width, so every request has the same length and is made of a template in a microsecond or two.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

CAPTURE = Path(__file__).parents[2] / "tests" / "captures" / "webhook_ANNOTATION_CREATED.json"

FIRST_PROJECT = 1_001
FIRST_TASK = 100_001
FIRST_ANNOTATION = 10_000_001
NUMBERS = {"annotation": FIRST_ANNOTATION, "task": FIRST_TASK, "project": FIRST_PROJECT}


@dataclass(frozen=True)
class Project:
    """Whom a webhook is about, as Label Studio knows it."""

    studio_id: int
    secret: str


@dataclass(frozen=True)
class Webhooks:
    """Of several projects the first gets webhooks until each of its tasks has had one, then the next, and so on in
    turns; with every turn, another annotator labels the same tasks."""

    template: str
    projects: Sequence[Project]
    tasks: int
    """Of each project that get a webhook."""
    first: int = FIRST_ANNOTATION

    @classmethod
    def to(cls, host: str, header: str, projects: Sequence[Project], tasks: int, first: int) -> Webhooks:
        """What a server at this address gets. The `header` carries the project's secret."""
        return cls(_template(host, header), projects, tasks, first)

    def request(self, number: int) -> bytes:
        turn, task = divmod(number, self.tasks)
        project = self.projects[turn % len(self.projects)]
        return self._bytes % {
            b"annotation": self.first + number,
            b"task": FIRST_TASK + task,
            b"project": project.studio_id,
            b"secret": project.secret.encode(),
        }

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Webhooks:
        return cls(**{**values, "projects": [Project(**project) for project in values["projects"]]})

    @cached_property
    def _bytes(self) -> bytes:
        return self.template.encode()


def task_data(tasks: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """The tasks that webhooks are about, as a project has them mirrored."""
    data = _body()["task"]["data"]
    for task in range(FIRST_TASK, FIRST_TASK + tasks):
        yield task, {name: value % {"task": task} for name, value in data.items()}


def _template(host: str, header: str) -> str:
    captured = _captured()
    body = json.dumps(_body()).replace('"%(', "%(").replace(')d"', ")d")
    size = len(body % NUMBERS)
    sent = {**captured["headers"], "Host": host, "Content-Length": str(size), header: "%(secret)s"}
    head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    return f"{captured['method']} {captured['path']} HTTP/1.1\r\n{head}\r\n{body}"


def _body() -> dict[str, Any]:
    """With a place for each number: of the annotation, its task and its project."""
    body: dict[str, Any] = json.loads(json.dumps(_captured()["body"]).replace("%", "%%"))
    annotation, project, task = body["annotation"], body["project"], body["task"]
    annotation |= {"id": "%(annotation)d", "task": "%(task)d", "project": "%(project)d"}
    project["id"] = "%(project)d"
    task |= {"id": "%(task)d", "project": "%(project)d"}
    task["data"] = {"image": "/data/local-files/?d=imgs/%(task)06d.png", "uid": "u%(task)06d"}
    return body


def _captured() -> dict[str, Any]:
    captured: dict[str, Any] = json.loads(CAPTURE.read_text())["requests"][0]
    return captured
