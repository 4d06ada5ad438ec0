"""The Label Studio that is labelled in: real, with a project of the same digits for each measurement."""

from __future__ import annotations

import secrets
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import requests

from backend.demo.annotator import Annotator
from backend.demo.members import sign_up, token_session
from backend.demo.options import ROOT
from backend.demo.pictures import Pictures
from backend.demo.project import DemoProject, truth_of
from backend.embedded.label_studio import LabelStudio, await_label_studio, start_label_studio
from backend.embedded.ports import any_free
from backend.embedded.process import Process, Stack
from backend.embedded.studio_template import DATABASE, copy_template, migrated_template

EXECUTABLE = ROOT / ".venv-studio" / "bin" / "label-studio"
TEMPLATE = ROOT / ".cache" / "label-studio"
BUSY_SECONDS = 30


class NoStudio(RuntimeError):
    """No Label Studio is installed here."""


@dataclass(frozen=True)
class Studio:
    server: LabelStudio
    process: Process
    pictures: Pictures

    @cached_property
    def admin(self) -> requests.Session:
        return token_session(self.server.token)

    def project(self) -> int:
        """A new one with every picture."""
        return self._demo.ensure(self.pictures, None)

    def people(self, count: int) -> list[requests.Session]:
        """New members, each logged in: Label Studio gives no two of them the same task."""
        made = []
        for _ in range(count):
            name, password = f"{secrets.token_hex(4)}@example.com", secrets.token_urlsafe(12)
            made.append(sign_up(self.server.url, self.admin, name, password))
        return made

    def annotator(self, project: int, session: requests.Session | None = None) -> Annotator:
        truth = partial(truth_of, self._demo.truths(self.pictures))
        return Annotator(self.server.url, project, session or self.admin, truth)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.admin.request(method, self.server.url + path, json=body, timeout=120)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def annotations(self, project: int) -> set[int]:
        """Their ids. From the database: Label Studio's listings leave out tasks that lost count of theirs."""
        return {row[0] for row in self._rows("SELECT id FROM task_completion WHERE project_id = ?", project)}

    def served_queue(self, project: int) -> str | None:
        """The project's `model_version`. From the database too: asked for it ten times a second, Label Studio would
        have less time for what is measured."""
        ((version,),) = self._rows("SELECT model_version FROM project WHERE id = ?", project)
        return version or None

    def unanswered(self, port: int) -> int:
        """Webhooks to this port that Label Studio gave up, by its own log."""
        told = self.process.log.read_text(errors="replace").splitlines()
        return sum("run_webhook_sync" in line and "[ERROR]" in line and f"port={port})" in line for line in told)

    @cached_property
    def _demo(self) -> DemoProject:
        return DemoProject(self.server.url, self.admin, self.server.files_root)

    def _rows(self, query: str, project: int) -> list[tuple[Any, ...]]:
        path = self.server.data / DATABASE
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=BUSY_SECONDS)) as base:
            return base.execute(query, (project,)).fetchall()


def begin(stack: Stack, home: Path) -> tuple[LabelStudio, Process]:
    """Starts it and does not wait for it. Raises NoStudio."""
    if not EXECUTABLE.exists():
        raise NoStudio("no Label Studio is installed here: run `make setup`")
    server = LabelStudio(
        executable=EXECUTABLE,
        data=home / "data",
        port=any_free(),
        files_root=home / "files",
        email="owner@example.com",
        password=secrets.token_urlsafe(12),
        token=secrets.token_hex(20),
    )
    server.files_root.mkdir(parents=True)
    copy_template(migrated_template(EXECUTABLE, TEMPLATE), server.data)
    return server, start_label_studio(stack, server, home / "label-studio.log")


def awaited(server: LabelStudio, process: Process, pictures: Pictures) -> Studio:
    await_label_studio(process, server)
    return Studio(server, process, pictures)
