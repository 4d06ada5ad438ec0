"""scikit-learn's logistic regression on what a frozen EfficientNet-Lite0 makes of an image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from models.learner import Examples, Fitted, Learner, OnProgress, Rows, unheard
from models.plan import Plan
from models.workshop import Workshop

NEVER_SEEN = -20.0
"""The logit of a class without a label so far."""


@dataclass(frozen=True)
class Logistic:
    """All that is learnt: arrays. They go into a safetensors file; nothing is ever pickled."""

    arrays: Mapping[str, NDArray[Any]]
    metrics: Mapping[str, float]

    def logits(self, rows: Rows) -> NDArray[np.float32]:
        scaled = (rows[:] - self.arrays["mean"]) / self.arrays["scale"]
        return scaled @ self.arrays["coefficients"].T + self.arrays["intercepts"]

    def tensors(self) -> dict[str, NDArray[Any]]:
        return dict(self.arrays)


class LogisticLearner:
    """Describing an image is left to a backbone that is there already; only `fit` is new."""

    def __init__(self, backbone: Learner) -> None:
        self._backbone = backbone
        self.input_size = backbone.input_size
        self.frozen = backbone.frozen

    def describe(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        return self._backbone.describe(images)

    def fit(
        self, examples: Examples, *, seed: int, start: Fitted | None = None, on_progress: OnProgress = unheard
    ) -> Logistic:
        rows = examples.rows[:]
        mean, scale = rows.mean(axis=0), np.maximum(rows.std(axis=0), 1e-6)
        coefficients = np.zeros((examples.classes, rows.shape[1]), np.float32)
        intercepts = np.full(examples.classes, NEVER_SEEN, np.float32)
        seen = np.unique(examples.labels)
        if len(seen) == 1:
            intercepts[seen] = 0.0
        else:
            fitted = LogisticRegression(C=0.01, max_iter=2000, random_state=seed)
            fitted.fit((rows - mean) / scale, examples.labels, sample_weight=examples.weights)
            if len(seen) == 2:  # scikit-learn keeps one row of coefficients for two classes
                fitted.coef_ = np.vstack([-fitted.coef_, fitted.coef_]) / 2
                fitted.intercept_ = np.hstack([-fitted.intercept_, fitted.intercept_]) / 2
            coefficients[seen], intercepts[seen] = fitted.coef_, fitted.intercept_
        arrays = {"mean": mean, "scale": scale, "coefficients": coefficients, "intercepts": intercepts}
        learnt = Logistic(arrays, {})
        right = learnt.logits(rows).argmax(axis=1) == examples.labels
        return Logistic(arrays, {"accuracy": float(right.mean())})

    def restore(self, tensors: Mapping[str, NDArray[Any]], *, classes: int) -> Logistic:
        if len(tensors["intercepts"]) != classes:
            raise ValueError(f"it was trained for {len(tensors['intercepts'])} classes, not {classes}")
        return Logistic(tensors, {})


def make(*, weights_folder: Path, device: str) -> LogisticLearner:
    """The entry point's factory."""
    workshop = Workshop(weights_folder, weights_folder / "frozen", device)
    return LogisticLearner(workshop.learner("efficientnet-lite0", Plan(way="head")))
