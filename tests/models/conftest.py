"""A learnable toy problem, and a classifier trained on it once for all tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.classifier import Classifier
from models.device import choose
from models.learner import Examples
from models.network_learner import FullLearner
from models.recipe import DEFAULT
from models.workshop import Workshop

Labelled = dict[str, Any]  # columns of the same length: images, labels, weights


def bars(count: int, *, seed: int) -> Labelled:
    """Noisy images with one bright vertical bar; its place is the class."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    images = rng.integers(0, 120, (count, 3, 28, 28), dtype=np.uint8)
    for image, label in zip(images, labels, strict=True):
        image[:, 4:24, 4 + 8 * label : 8 + 8 * label] += 130
    return {"images": images, "labels": labels.astype(np.int64), "weights": np.ones(count, dtype=np.float32)}


def examples_of(data: Labelled) -> Examples:
    return Examples(data["images"], data["labels"], data["weights"], classes=3)


@pytest.fixture(scope="session")
def training_set() -> Labelled:
    return bars(48, seed=1)


@pytest.fixture(scope="session")
def unseen() -> Labelled:
    return bars(300, seed=2)


@pytest.fixture(scope="session")
def learner() -> FullLearner:
    return FullLearner("small-cnn", DEFAULT, choose("cpu"))


@pytest.fixture(scope="session")
def classifier(training_set: Labelled, learner: FullLearner) -> Classifier:
    return Classifier(
        learner,
        learner.fit(examples_of(training_set), seed=5),
        classes=["left", "middle", "right: größer"],
        version="project-1-round-1",
    )


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path / "weights", tmp_path / "frozen", "cpu")
