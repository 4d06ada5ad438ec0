"""Says when a training run has converged."""

from __future__ import annotations

import math


class Convergence:
    """Told the loss of each epoch, and true once going on is not worth it.

    That is once the loss is low enough, or once it has found no new lowest value for `patience` epochs; with no
    patience given, it waits for a low loss however long that takes.
    """

    def __init__(self, *, low_enough: float, patience: int | None) -> None:
        self.low_enough = low_enough
        self.patience = math.inf if patience is None else patience
        self.lowest = math.inf
        self.epochs_since_lowest = 0

    def reached(self, loss: float) -> bool:
        if loss < self.lowest:
            self.lowest, self.epochs_since_lowest = loss, 0
        else:
            self.epochs_since_lowest += 1
        return loss < self.low_enough or self.epochs_since_lowest >= self.patience
