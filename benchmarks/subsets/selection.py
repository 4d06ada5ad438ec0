"""What a rule selected, whichever rule it was."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import iwes


@dataclass(frozen=True, eq=False)
class Selection:
    """In the order of selection, arrays of shape (m,)."""

    index: NDArray[np.int64]
    weight: NDArray[np.float64]
    round: NDArray[np.int64]  # 0 for the seed set
    probability: NDArray[np.float64]  # of the coin that accepted it; 1 where no coin was tossed
    examined: int  # tasks of the pool that were looked at, summed over the rounds
    cap: float = np.inf

    @classmethod
    def of(cls, subset: iwes.Subset, cap: float) -> Selection:
        return cls(
            subset.index,
            subset.weight,
            subset.round,
            np.concatenate([drawn.probability for drawn in subset.draws]),
            sum(drawn.examined for drawn in subset.draws[1:]),
            cap,
        )

    def share_capped(self) -> float:
        """Of those drawn by a coin: the seed set has no coins and weight 1."""
        return iwes.share_capped(self.probability[self.round > 0], cap=self.cap)

    def share_largest(self) -> float:
        """How many of those drawn have the largest weight of all: that of the cap or of the floor, as a rule."""
        weight = self.weight[self.round > 0]
        return float(np.isclose(weight, self.weight.max()).mean()) if weight.size else 1.0

    def effective_size(self) -> float:
        """Of all, the seed set included."""
        return iwes.effective_size(self.weight)
