"""The official label-studio-ml server beside Label Studio: started, connected, and what its book says."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Set
from dataclasses import dataclass, field
from pathlib import Path

from backend.embedded.process import Stack
from benchmarks.load import digits, server
from benchmarks.load.official import COMMAND, HERE, IMAGES, MODELS
from benchmarks.loop.studio import Studio

APP = "benchmarks.loop.official_app:create_app()"
BOOK, WAY = "LOOP_BOOK", "LOOP_WAY"
"""The variables that name the book's file, and the way of training."""
EVERY_K, EVERY_LABEL = "every-k", "every-label"


@dataclass
class Book:
    received: set[int] = field(default_factory=set)
    """The annotations that a webhook told of."""
    answered: set[int] = field(default_factory=set)
    trainings: list[float] = field(default_factory=list)
    """The seconds of each that has ended."""

    def unknown(self, annotations: Set[int]) -> int:
        """Those in Label Studio that the server was never told of."""
        return len(annotations - self.received)


@dataclass(frozen=True)
class Official:
    server: server.Server
    way: str
    book: Path

    def connect(self, studio: Studio, project: int, k: int) -> None:
        """As an admin does it: Label Studio adds the webhook by itself. It is not asked for predictions, which it would
        be before each next task: this backend is not either."""
        url = f"http://{self.server.host}"
        studio.call("POST", "/api/ml", {"project": project, "url": url, "title": "official", "is_interactive": False})
        changes = {"model_version": "", "min_annotations_to_start_training": k if self.way == EVERY_K else 0}
        studio.call("PATCH", f"/api/projects/{project}/", changes)

    def read(self) -> Book:
        book = Book()
        trains = "START_TRAINING" if self.way == EVERY_K else "ANNOTATION_CREATED"
        lines = self.book.read_text().splitlines() if self.book.exists() else []
        for line in map(json.loads, lines):
            if line["action"] == "ANNOTATION_CREATED":
                (book.received if line["event"] == "received" else book.answered).add(line["annotation"])
            if line["action"] == trains and line["event"] == "answered":
                book.trainings.append(line["seconds"])
        return book


def start(stack: Stack, home: Path, way: str, labels: int) -> Official:
    """Does not wait for it."""
    folder = home / f"official-{way}"
    models, images, book = folder / "models", folder / "digits", folder / "book.jsonl"
    models.mkdir(parents=True)
    digits.write(images, max(labels, 50))

    def argv(port: int) -> list[str]:
        return [sys.executable, "-m", "gunicorn", *COMMAND, *HERE, "--bind", f"127.0.0.1:{port}", APP]

    env = {**os.environ, MODELS: str(models), IMAGES: str(images), BOOK: str(book), WAY: way}
    return Official(server.start(stack, "official", argv, folder / "official.log", lambda _: env), way, book)
