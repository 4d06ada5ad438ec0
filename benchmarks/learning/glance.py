"""A learner that does next to nothing with an image but read all of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.learner import Examples, Fitted, OnProgress, Rows, unheard

AT_ONCE = 256


class Glance:
    """Follows `models.learner`: the mean of each colour and a fixed matrix. It is its own result."""

    frozen = None
    metrics: Mapping[str, float] = {}

    def __init__(self, input_size: int, classes: int) -> None:
        self.input_size = input_size
        self._matrix = np.random.default_rng(0).normal(size=(3, classes))

    def describe(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        raise NotImplementedError("nothing is frozen: the examples are the images themselves")

    def fit(
        self, examples: Examples, *, seed: int, start: Fitted | None = None, on_progress: OnProgress = unheard
    ) -> Glance:
        return self

    def restore(self, tensors: Mapping[str, NDArray[Any]], *, classes: int) -> Glance:
        return self

    def logits(self, rows: Rows) -> NDArray[np.float64]:
        parts = [rows[start : start + AT_ONCE].mean(axis=(2, 3)) / 128 for start in range(0, len(rows), AT_ONCE)]
        found: NDArray[np.float64] = np.concatenate(parts) @ self._matrix
        return found

    def tensors(self) -> dict[str, NDArray[Any]]:
        return {"matrix": self._matrix}
