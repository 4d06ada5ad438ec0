"""Says when a training run has converged."""

from __future__ import annotations

import math

LOW_ENOUGH = 0.1
PATIENCE = 10


class Convergence:
    """Told the loss of each epoch, met under augmentation and dropout, and true once going on is not worth it.

    That is once the loss is below 0.1, where small networks are still well calibrated and the probabilities the next
    draw is made of do not yet run to 0 and 1; or once it has found no new lowest value for 10 epochs.
    """

    def __init__(self, *, low_enough: float = LOW_ENOUGH, patience: int = PATIENCE) -> None:
        self.low_enough, self.patience = low_enough, patience
        self.lowest = math.inf
        self.epochs_since_lowest = 0

    def reached(self, loss: float) -> bool:
        if loss < self.lowest:
            self.lowest, self.epochs_since_lowest = loss, 0
        else:
            self.epochs_since_lowest += 1
        return loss < self.low_enough or self.epochs_since_lowest >= self.patience
