"""A model for the official label-studio-ml server that trains in the request, as its examples do.

Since its release 2 the server calls `fit` inside the webhook's request. The release on PyPI, 1.0.9, starts a process
for each webhook instead, each of which imports torch: under this load that is hundreds at once and the end of the
machine, so here its job runs in the request as well.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from flask import Flask
from label_studio_ml import api, model

from benchmarks.load import digits
from benchmarks.load.official import IMAGES, MODELS
from models.learner import Examples, Learner
from models.plan import Plan
from models.workshop import Workshop

LABELS = 50
"""What `fit` trains on: one round's. They are read once, which is kinder than the examples: those fetch all labels of
the project from Label Studio every time."""


class SmallNetwork(model.LabelStudioMLBase):  # type: ignore[misc]
    def predict(self, tasks: Any, **_: Any) -> list[Any]:
        return []

    def fit(self, *_: Any, **__: Any) -> dict[str, float]:
        learner, examples = _material()
        fitted = learner.fit(examples, seed=7)
        return {"epochs": fitted.metrics["epochs"], "seconds": fitted.metrics["seconds"]}


@cache
def _material() -> tuple[Learner, Examples]:
    """The network that the backend trains, by the recipe that it trains with, and a round's labels."""
    folder = Path(os.environ[MODELS])
    learner = Workshop(folder / "weights", folder / "frozen", "cpu").learner("small-cnn", Plan(way="full"))
    images, labels = digits.read(Path(os.environ[IMAGES]), LABELS)
    return learner, Examples(images, labels, np.ones(len(labels), np.float32), 10)


def create_app() -> Flask:
    if not hasattr(model, "LabelStudioMLManager"):  # release 2
        app: Flask = api.init_app(model_class=SmallNetwork)
        return app
    _train_in_the_request()
    app = api.init_app(model_class=SmallNetwork, model_dir=os.environ[MODELS])
    return app


def _train_in_the_request() -> None:
    class InRequest(model.SimpleJobManager):  # type: ignore[misc]
        def run_job(self, model_class: Any, args: tuple[Any, ...]) -> None:
            self.job(model_class, *args)

    manager = model.LabelStudioMLManager
    manager.get_job_manager = classmethod(lambda cls: InRequest(model_dir=cls.model_dir))
