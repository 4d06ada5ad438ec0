"""Pools as real projects have them, made of a clean one. What is tested on stays clean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.subsets.fashion import Labelled
from models.learner import Rows

RARE, OFTEN = 1, 10
WRONG, JUNK = 0.1, 0.05
COPIES = 5
LIGHT = 0.05
"""How much lighter or darker a copy is, standard deviation. Noise on each pixel would tell copies apart as well, but
not compare rules: with a deviation of 6 of 255, a model of Fashion-MNIST is 4 points worse on clean images however its
labels were chosen."""


@dataclass(frozen=True, eq=False)
class Pool:
    """`answers` (n,): what the annotator says of each image, −1 where it is skipped because it shows nothing; `truth`
    (n,): what it is. They differ where labels are wrong."""

    images: Rows
    answers: NDArray[np.int64]
    truth: NDArray[np.int64]
    test_images: Rows
    test_labels: NDArray[np.int64]
    classes: int

    def __len__(self) -> int:
        return len(self.answers)


def clean(data: Labelled, _: np.random.Generator) -> Pool:
    return Pool(data.images, data.labels, data.labels, data.test_images, data.test_labels, data.classes)


def duplicates(data: Labelled, rng: np.random.Generator) -> Pool:
    """A fifth of the images, each five times, a little lighter or darker, as a camera takes several pictures of one
    thing."""
    kept = rng.permutation(len(data.labels))[: len(data.labels) // COPIES]
    place = rng.permutation(np.repeat(kept, COPIES))
    light = rng.normal(1, LIGHT, (len(place), 1, 1, 1)).astype(np.float32)
    images = np.clip(data.images[place] * light, 0, 255).astype(np.uint8)
    return replace(clean(data, rng), images=images, answers=data.labels[place], truth=data.labels[place])


def imbalance(data: Labelled, rng: np.random.Generator) -> Pool:
    """Every other class is ten times rarer in the pool; the test set is as it was."""
    rare = (data.labels % 2 == 1) & (rng.random(len(data.labels)) >= RARE / OFTEN)
    return _some(clean(data, rng), np.flatnonzero(~rare))


def noise(data: Labelled, rng: np.random.Generator) -> Pool:
    """One answer in ten is wrong, by any other class."""
    other = (data.labels + rng.integers(1, data.classes, len(data.labels))) % data.classes
    wrong = rng.random(len(data.labels)) < WRONG
    return replace(clean(data, rng), answers=np.where(wrong, other, data.labels))


def junk(data: Labelled, rng: np.random.Generator) -> Pool:
    """One image in twenty shows nothing, and the annotator skips it: a label is spent and nothing learnt."""
    spoilt = np.flatnonzero(rng.random(len(data.labels)) < JUNK)
    images, answers = np.array(data.images), data.labels.copy()
    images[spoilt] = rng.integers(0, 256, (len(spoilt), 1, *images.shape[2:]), dtype=np.uint8)
    answers[spoilt] = -1
    return replace(clean(data, rng), images=images, answers=answers)


def _some(pool: Pool, kept: NDArray[np.int64]) -> Pool:
    return replace(pool, images=pool.images[kept], answers=pool.answers[kept], truth=pool.truth[kept])


POOLS: dict[str, Callable[[Labelled, np.random.Generator], Pool]] = {
    "clean": clean,
    "duplicates": duplicates,
    "imbalance": imbalance,
    "noise": noise,
    "junk": junk,
}
TITLES = {
    "clean": "clean",
    "duplicates": "near-duplicates",
    "imbalance": "10:1 imbalance",
    "noise": "10 % of labels wrong",
    "junk": "5 % junk",
}
