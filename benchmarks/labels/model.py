"""The models of the comparison: the product's own learners, with what the rules want to know of them."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.labels.pools import Pool
from models import networks, pretrained
from models.calibration import calibrate
from models.classifier import Classifier
from models.device import choose
from models.feed import Picked
from models.heads import LinearHead
from models.learner import Examples, Learner, Rows
from models.network_learner import FittedNetwork, FullLearner, HeadLearner
from models.recipe import DEFAULT, HEAD

SMALL = "small-cnn"
DESCRIBED_AT_ONCE = 256


@dataclass(frozen=True)
class Trained:
    classifier: Classifier

    def probabilities(self, rows: Rows) -> NDArray[np.float64]:
        return self.classifier.probabilities(rows)

    def features(self, rows: Rows) -> NDArray[np.float32]:
        """What the last layer reads, (n, d)."""
        fitted = self.classifier.fitted
        assert isinstance(fitted, FittedNetwork)  # noqa: S101
        if fitted.image_size is None:
            return np.asarray(rows[:], np.float32)
        parts = [slice(start, start + 4096) for start in range(0, len(rows), 4096)]
        backbone: Any = fitted.module.backbone
        with torch.inference_mode():
            found = [backbone(torch.from_numpy(np.array(rows[part])).to(fitted.compute.device)) for part in parts]
        return np.concatenate([part.cpu().numpy() for part in found])


def learner_for(name: str, pool: Pool) -> Learner:
    """The small network, or a linear head on descriptions."""
    compute = choose("cpu")
    if name == SMALL:
        return FullLearner(SMALL, DEFAULT, compute)
    width = pool.images.shape[1]
    return HeadLearner(
        lambda: networks.backbone(name),
        lambda classes: LinearHead(width, classes),
        frozen=name,
        input_size=networks.input_size(name),
        recipe=HEAD,
        compute=compute,
    )


def train(
    learner: Learner,
    pool: Pool,
    places: NDArray[np.int64],
    weights: NDArray[np.float64],
    *,
    seed: int,
    calibrated: bool = False,
) -> Trained:
    """What was skipped teaches nothing."""
    answered = pool.answers[places] >= 0
    places, weights = places[answered], weights[answered]
    examples = Examples(Picked(pool.images, places), pool.answers[places], weights.astype(np.float32), pool.classes)
    fitted = learner.fit(examples, seed=seed)
    temperature = calibrate(learner, examples, seed) if calibrated else 1.0
    names = [str(number) for number in range(pool.classes)]
    return Trained(Classifier(learner, fitted, classes=names, version="benchmark", temperature=temperature))


def described(pool: Pool, name: str, cache: Path) -> Pool:
    """The pool with descriptions in the place of images where the learner is a head; each image is described once."""
    if name == SMALL:
        return pool
    return replace(
        pool, images=_descriptions(pool.images, name, cache), test_images=_descriptions(pool.test_images, name, cache)
    )


def _descriptions(images: NDArray[np.uint8], name: str, cache: Path) -> NDArray[np.float32]:
    digest = hashlib.sha256(np.ascontiguousarray(images).tobytes()).hexdigest()[:16]
    path = cache / f"{name}-{digest}.npy"
    if path.exists():
        return np.asarray(np.load(path))
    weights = pretrained.find(name, cache, download=False)
    backbone = networks.backbone(name, pretrained=weights).eval()
    size = networks.input_size(name)
    found = []
    with torch.inference_mode():
        for start in range(0, len(images), DESCRIBED_AT_ONCE):
            some = torch.from_numpy(np.array(images[start : start + DESCRIBED_AT_ONCE])).float()
            larger = torch.nn.functional.interpolate(some, (size, size), mode="bilinear", antialias=True)
            found.append(backbone(larger.round().clamp(0, 255).to(torch.uint8)).numpy())
    cache.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(f".{os.getpid()}.npy")  # another process may be at the same images
    np.save(beside, np.concatenate(found))
    beside.replace(path)
    return np.concatenate(found)
