"""How often a round's model is right about the held-out images."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from backend.demo.pictures import Pictures
from models import checkpoint
from models.images import decode
from models.workshop import Workshop


class HeldOut:
    """The held-out images of the demo, decoded once for each input size a model asks for."""

    def __init__(self, pictures: Pictures, workshop: Workshop) -> None:
        self._pictures = pictures
        self._workshop = workshop
        self._truth = np.array([picture.truth for picture in pictures.held_out])
        self._decoded = cache(self._decode)

    def accuracy(self, model: Path) -> float:
        """Share of right answers, in [0, 1], of the checkpoint in the folder `model`."""
        classifier = checkpoint.load(model, self._workshop)
        learner = classifier.learner
        images = self._decoded(learner.input_size)
        probabilities = classifier.probabilities(images if learner.frozen is None else learner.describe(images))
        answers = np.array(classifier.classes)[probabilities.argmax(axis=1)]
        return float((answers == self._truth).mean())

    def _decode(self, size: int) -> NDArray[np.uint8]:
        root = self._pictures.root
        return np.stack([decode((root / one.path).read_bytes(), size=size) for one in self._pictures.held_out])
