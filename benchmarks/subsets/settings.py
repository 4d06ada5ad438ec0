"""The sizes of a run: what must be equal for two results to stand in one table."""

from __future__ import annotations

from dataclasses import dataclass

from models.recipe import DEFAULT


@dataclass(frozen=True)
class Settings:
    k0: int = 100  # labels of the seed set
    k: int = 100  # labels of each round
    rounds: int = 4
    epochs: int = DEFAULT.epochs_at_most  # of a training at most; it usually converges earlier
    full_epochs: int = 5  # of the training on everything at most

    def labels(self) -> list[int]:
        """How many labels there are when each model of the curve is trained."""
        return [self.k0 + self.k * number for number in range(self.rounds + 1)]
