"""How many labels there are: what must be equal for two results to stand in one table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    k0: int  # labels of the seed set
    k: int  # labels of each round
    rounds: int

    def labels(self) -> list[int]:
        """How many there are when each model of the curve is trained."""
        return [self.k0 + self.k * number for number in range(self.rounds + 1)]


SIZES = {"mnist-5000": Settings(50, 50, 9)}
USUAL = Settings(100, 100, 9)
