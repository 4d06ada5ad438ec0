"""What a project's model is, whoever wrote it: it describes each image once and learns from the descriptions.

Everything that trains, scores or keeps a model speaks to these protocols alone, so a model of your own needs nothing
but to follow them. A learner with no frozen part (a network trained in full) reads the images themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Rows(Protocol):
    """Images (n, 3, s, s) or descriptions (n, d), one per example: an array, or files that act like one."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, places: NDArray[np.int64] | slice) -> NDArray[Any]: ...


@dataclass(frozen=True)
class Examples:
    """A weighted training set: labels (n,) in 0 … classes − 1, weights (n,) finite and above 0."""

    rows: Rows
    labels: NDArray[np.int64]
    weights: NDArray[np.float32]
    classes: int

    def __post_init__(self) -> None:
        count = len(self.rows)
        if self.classes < 2:
            raise ValueError(f"a classifier needs at least 2 classes, not {self.classes}")
        if not count:
            raise ValueError("there is no labelled image to train on")
        if self.labels.shape != (count,) or self.weights.shape != (count,):
            raise ValueError(
                f"{count} examples need as many labels and weights, not {self.labels.shape} and {self.weights.shape}"
            )
        if not np.issubdtype(self.labels.dtype, np.integer):
            raise ValueError(f"labels must be class numbers (integers), not {self.labels.dtype}")
        outside = np.flatnonzero((self.labels < 0) | (self.labels >= self.classes))
        if outside.size:
            raise ValueError(
                f"labels must be 0 … {self.classes - 1}: example {outside[0]} has {self.labels[outside[0]]}"
            )
        unusable = np.flatnonzero(~(np.isfinite(self.weights) & (self.weights > 0)))
        if unusable.size:
            raise ValueError(
                f"weights must be finite and above 0: example {unusable[0]} has {self.weights[unusable[0]]}"
            )

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Progress:
    """Where a training run stands after an epoch."""

    epoch: int
    of: int  # epochs at most: convergence usually comes earlier
    loss: float  # weighted, as met by the epoch's own steps
    accuracy: float | None  # on labels held out from training; None where there are too few to hold any out
    seconds_left: float  # at most, for the same reason


OnProgress = Callable[[Progress], None]


def unheard(progress: Progress) -> None:
    """For training that nobody watches."""


class Diverged(RuntimeError):
    """Training went astray; what came out must not be used. The message says how it showed."""


class Fitted(Protocol):
    """What a learner has learnt. It never changes, so any number of threads may ask it at once."""

    @property
    def metrics(self) -> Mapping[str, float]:
        """How the training went, by name: epochs, loss, seconds …"""

    def logits(self, rows: Rows) -> NDArray[np.floating[Any]]:
        """(n, classes); their softmax is P(class | row). Logarithms of probabilities will do."""

    def tensors(self) -> dict[str, NDArray[Any]]:
        """All that must be kept to make it again with `Learner.restore`."""


class Learner(Protocol):
    """One kind of model with its settings, before any training."""

    @property
    def input_size(self) -> int:
        """Side of the square images it reads."""

    @property
    def frozen(self) -> str | None:
        """Names the part that never learns: equal names promise equal descriptions, which are kept on disk under that
        name and used in every round. None where there is no such part and examples are the images themselves."""

    def describe(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Descriptions (n, d) of images (n, 3, s, s) by the frozen part; never called where there is none."""

    def fit(
        self, examples: Examples, *, seed: int, start: Fitted | None = None, on_progress: OnProgress = unheard
    ) -> Fitted:
        """Learns from scratch, or going on from `start`. The same seed gives the same result on the same hardware.
        Raises Diverged."""

    def restore(self, tensors: Mapping[str, NDArray[Any]], *, classes: int) -> Fitted:
        """What was fitted before, out of its tensors. Raises ValueError where they do not fit."""
