"""The arrays that everyone chooses from."""

from __future__ import annotations

import numpy as np

from benchmarks.speed.measure.asked import Array
from benchmarks.speed.settings import Settings

PARTS = 20


def pool(rows: int, settings: Settings, seed: int = 0) -> tuple[Array, Array]:
    """Probabilities and features: overlapping groups, and what a half-sure linear model makes of them."""
    rng = np.random.default_rng(seed)
    classes, width = settings.classes, settings.features
    group = rng.integers(classes, size=rows)
    features = np.maximum(rng.normal(size=(classes, width))[group] + rng.normal(size=(rows, width)), 0)
    logits = features @ rng.normal(size=(width, classes)) * 0.25
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True), features


def large(settings: Settings) -> Array:
    """Probabilities alone, made in parts: the features of all would not be kept anyway."""
    return np.concatenate([pool(settings.large // PARTS, settings, seed)[0] for seed in range(PARTS)])
