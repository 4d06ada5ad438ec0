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
DESCRIBED_AT = 96
"""The side of the images that a frozen network describes: with its own 224, images of 28 pixels would take thirteen
times as long."""
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
    """Of each image that was never described before, now; of the others, as kept. Pools share most of their images."""
    marks = np.array([hashlib.blake2b(image.tobytes(), digest_size=16).hexdigest() for image in images[:]])
    folder = cache / f"{name}-{DESCRIBED_AT}"
    found: NDArray[np.float32] | None = None
    missing = np.ones(len(marks), bool)
    for path in sorted(folder.glob("*.marks.npy")):
        kept = np.load(path)
        order = np.argsort(kept)
        at = order[np.searchsorted(kept, marks, sorter=order).clip(max=len(kept) - 1)]
        here = missing & (kept[at] == marks)
        if here.any():
            rows = np.load(path.with_name(path.name.replace(".marks", "")), mmap_mode="r")
            found = np.empty((len(marks), rows.shape[1]), np.float32) if found is None else found
            found[here] = rows[at[here]]
            missing &= ~here
    if not missing.any() and found is not None:
        return found
    _, first = np.unique(marks[missing], return_index=True)
    places = np.flatnonzero(missing)[np.sort(first)]
    weights = pretrained.find(name, cache, download=False)
    backbone = networks.backbone(name, pretrained=weights).eval()
    new = training.logits(backbone, Enlarged(Picked(images, places), DESCRIBED_AT), compute=choose("cpu"))
    _keep(folder, marks[places], new)
    return _descriptions(images, name, cache)


def _keep(folder: Path, marks: NDArray[np.str_], found: NDArray[np.float32]) -> None:
    """The marks last: whoever finds them finds the descriptions too."""
    folder.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256("".join(marks).encode()).hexdigest()[:16]
    for suffix, array in ((".npy", found), (".marks.npy", marks)):
        beside = folder / f"{name}.{os.getpid()}.part"  # another process may be at the same images
        with beside.open("wb") as file:
            np.save(file, array)
        beside.replace(folder / f"{name}{suffix}")
