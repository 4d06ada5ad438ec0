"""A trained model that knows its classes and gives their probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from models.learner import Fitted, Learner, Rows


class Classifier:
    """What a learner has learnt, the names of its classes in the order of its outputs, and its version.

    `temperature` divides the logits: above 1 for a model that is surer than it has reason to be. Nothing changes after
    construction, so any number of threads may ask at once.
    """

    def __init__(
        self, learner: Learner, fitted: Fitted, *, classes: Sequence[str], version: str, temperature: float = 1.0
    ) -> None:
        if len(classes) < 2 or len(set(classes)) < len(classes):
            raise ValueError(f"classes must be at least 2 different names, not {list(classes)}")
        if not 0 < temperature < np.inf:
            raise ValueError(f"the temperature must be finite and above 0, not {temperature}")
        self.learner, self.fitted = learner, fitted
        self.classes = tuple(classes)
        self.version = version
        self.temperature = temperature

    def comparable_with(self, other: Classifier) -> bool:
        """Whether the two speak of the same classes, having read the same rows."""
        mine, theirs = self.learner, other.learner
        same_rows = (mine.frozen, mine.input_size) == (theirs.frozen, theirs.input_size)
        return same_rows and self.classes == other.classes

    def probabilities(self, rows: Rows) -> NDArray[np.float64]:
        """P(class | row) of shape (n, classes), rows summing to 1; rows are those its learner reads."""
        logits = self.fitted.logits(rows)
        if logits.shape != (len(rows), len(self.classes)):
            raise ValueError(f"{len(rows)} rows of {len(self.classes)} classes gave logits of shape {logits.shape}")
        # in float64, so that rows sum to 1 within 1e-15, and by torch, which takes all cores to it
        found: NDArray[np.float64] = torch.softmax(
            torch.from_numpy(np.require(logits, requirements=["C", "W"])).double() / self.temperature, dim=1
        ).numpy()
        return found
