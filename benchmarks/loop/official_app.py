"""The official server as it is loaded elsewhere, in two ways of training, with a book of the webhooks it got.

`every label`: it trains in the request of each annotation's webhook, as its examples do. `every k`: it answers those at
once and trains when Label Studio says START_TRAINING, which Label Studio says inside of every k-th submit; the examples
that are given a number of updates to wait for come down to the same. Either way it is spared what examples do besides:
fetching all labels of the project from Label Studio again, and predictions.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from flask import Flask, Response, g, request
from label_studio_ml import model

from benchmarks.load import digits, official_app
from benchmarks.load.official import IMAGES
from benchmarks.loop.official import BOOK, EVERY_K, WAY
from models.learner import Examples


class EveryK(official_app.SmallNetwork):
    """Learns from as many labels as the project has by then."""

    TRAIN_EVENTS = ("START_TRAINING",)

    def fit(self, *_: Any, data: dict[str, Any], **__: Any) -> dict[str, float]:
        learner, every = _material()
        count = min(len(every), data["project"]["total_annotations_number"] or official_app.LABELS)
        some = Examples(every.rows[:count], every.labels[:count], every.weights[:count], every.classes)
        return {"epochs": learner.fit(some, seed=7).metrics["epochs"]}


@cache
def _material() -> tuple[Any, Examples]:
    learner, _ = official_app._material()
    images, labels = digits.read(Path(os.environ[IMAGES]), sys.maxsize)
    return learner, Examples(images, labels, np.ones(len(labels), np.float32), 10)


def create_app() -> Flask:
    app = official_app.create_app()
    if os.environ[WAY] == EVERY_K:
        model.LabelStudioMLManager.model_class = EveryK
        _material()
    keep_book(app, Path(os.environ[BOOK]))
    return app


def keep_book(app: Flask, path: Path) -> None:
    """A line for each webhook that a thread took up, and one once it is answered: two short writes."""
    lock = threading.Lock()

    def write(line: dict[str, Any]) -> None:
        with lock, path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    @app.before_request
    def took_up() -> None:
        if request.path == "/webhook":
            told = request.get_json()
            annotation = (told.get("annotation") or {}).get("id")
            g.line = {"action": told["action"], "annotation": annotation}
            g.began = time.monotonic()
            write({**g.line, "event": "received"})

    @app.after_request
    def answered(response: Response) -> Response:
        if request.path == "/webhook":
            took = time.monotonic() - g.began
            write({**g.line, "event": "answered", "seconds": round(took, 4), "ok": response.status_code < 300})
        return response
