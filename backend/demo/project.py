"""The demo's Label Studio project: made once, completed if a start was cut short, found again at later ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from backend.demo.label_config import IMAGE, label_config
from backend.demo.pictures import Picture, Pictures

LOCAL_FILES = "/data/local-files/?d="
TITLE_LENGTH = 50


@dataclass(frozen=True)
class DemoProject:
    """Speaks for the admin, whose session it gets; each step looks first whether it has been done."""

    url: str
    session: requests.Session
    files_root: Path
    """The folder Label Studio serves files below."""

    def ensure(self, pictures: Pictures, known: int | None) -> int:
        """The id of a project that holds every picture of the pool: the known one, if Label Studio still has it."""
        project = self._find(known) or self._create(pictures)
        self._serve(project["id"], pictures.root / "pool")
        if project["task_number"] in (0, None):
            self._import(project["id"], pictures)
        return int(project["id"])

    def address(self, pictures: Pictures, picture: Picture) -> str:
        """A picture's address as it stands in its task."""
        return LOCAL_FILES + (pictures.root / picture.path).relative_to(self.files_root).as_posix()

    def truths(self, pictures: Pictures) -> dict[str, str]:
        """Address to class, for the scripted annotator."""
        return {self.address(pictures, one): one.truth for one in pictures.pool if one.truth is not None}

    def _find(self, known: int | None) -> dict[str, Any] | None:
        if known is None:
            return None
        answer = self.session.get(f"{self.url}/api/projects/{known}/", timeout=60)
        if answer.status_code == requests.codes.not_found:
            return None
        return _content(answer)

    def _create(self, pictures: Pictures) -> dict[str, Any]:
        title = f"Demo: {pictures.name}"[:TITLE_LENGTH]
        body = {"title": title, "label_config": label_config(pictures.classes), "show_instruction": False}
        return self._post("/api/projects/", body)

    def _serve(self, project: int, folder: Path) -> None:
        """Label Studio serves a local file only where a storage row covers its folder."""
        answer = self.session.get(f"{self.url}/api/storages/localfiles?project={project}", timeout=60)
        answer.raise_for_status()
        if any(row["path"] == str(folder) for row in answer.json()):
            return
        row = {"project": project, "path": str(folder), "use_blob_urls": True, "title": "Demo pictures"}
        self._post("/api/storages/localfiles", row)

    def _import(self, project: int, pictures: Pictures) -> None:
        tasks = [{"data": {IMAGE: self.address(pictures, picture)}} for picture in pictures.pool]
        self._post(f"/api/projects/{project}/import", tasks)

    def _post(self, path: str, body: Any) -> dict[str, Any]:
        return _content(self.session.post(self.url + path, json=body, timeout=600))


def _content(answer: requests.Response) -> dict[str, Any]:
    if not answer.ok:
        raise requests.HTTPError(f"Label Studio refused {answer.request.method} {answer.url}: {answer.text[:300]}")
    content: dict[str, Any] = answer.json()
    return content


def truth_of(truths: Mapping[str, str], data: Mapping[str, Any]) -> str:
    return truths[data[IMAGE]]
