"""The models of the comparison: the product's own learners, with what the rules want to know of them."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from benchmarks.labels.enlarged import Enlarged
from benchmarks.labels.pools import Pool
from models import networks, pretrained, recipe, training
from models.calibration import calibrate
from models.classifier import Classifier
from models.device import choose
from models.feed import Picked
from models.heads import LinearHead
from models.learner import Examples, Learner, Rows
from models.network_learner import FittedNetwork, FullLearner, HeadLearner

SMALL = "small-cnn"
BRIEF = replace(recipe.DEFAULT, epochs_at_most=40)
"""The product's recipe, which on Fashion-MNIST would go on for a hundred epochs: twice the time for a point more of
accuracy, the same for every rule."""
PAPER = "vgg16-paper"
"""The paper's network, trained in full from torchvision's weights by the paper's recipe. For a GPU."""


class NoWeights(ValueError):
    """The pre-trained weights that a learner starts from are not here; the message says what to do."""


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
        network: Any = fitted.module
        return training.logits(nn.Sequential(network.backbone, network.head[:-1]), rows, compute=fitted.compute)


def learner_for(name: str, pool: Pool, cache: Path, device: str = "cpu") -> Learner:
    """The small network, a linear head on descriptions, or the paper's. Raises NoWeights."""
    compute = choose(device)
    if name == SMALL:
        return FullLearner(SMALL, BRIEF, compute)
    if name == PAPER:
        start = pretrained.find("vgg16", cache)
        if start is None:
            raise NoWeights(f"the paper's VGG16 starts from torchvision's weights; put the file vgg16.pth into {cache}")
        return FullLearner("vgg16", recipe.PAPER, compute, start)
    width = pool.images.shape[1]
    return HeadLearner(
        lambda: networks.backbone(name),
        lambda classes: LinearHead(width, classes),
        frozen=name,
        input_size=networks.input_size(name),
        recipe=recipe.HEAD,
        compute=compute,
    )


def settle(learner: Learner, first: Trained) -> None:
    """Later models take the learning rate that was chosen on the seed set, as in the paper."""
    if isinstance(learner, FullLearner):
        rate = first.classifier.fitted.metrics["learning_rate"]
        learner.recipe = replace(learner.recipe, learning_rate=rate)


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
    if name == PAPER:
        size = networks.input_size("vgg16")
        return replace(pool, images=Enlarged(pool.images, size), test_images=Enlarged(pool.test_images, size))
    return replace(
        pool, images=_descriptions(pool.images, name, cache), test_images=_descriptions(pool.test_images, name, cache)
    )


def _descriptions(images: Rows, name: str, cache: Path) -> NDArray[np.float32]:
    digest = hashlib.sha256(np.ascontiguousarray(images[:]).tobytes()).hexdigest()[:16]
    path = cache / f"{name}-{digest}.npy"
    if path.exists():
        return np.asarray(np.load(path))
    weights = pretrained.find(name, cache, download=False)
    backbone = networks.backbone(name, pretrained=weights).eval()
    found = training.logits(backbone, Enlarged(images, networks.input_size(name)), compute=choose("cpu"))
    cache.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(f".{os.getpid()}.npy")  # another process may be at the same images
    np.save(beside, found)
    beside.replace(path)
    return found
