"""Random choice: the baseline every other strategy has to beat."""

import numpy as np
from numpy.typing import NDArray

from iwes.baselines.candidates import Candidates
from iwes.draw import draw_seed


def random(candidates: Candidates, k: int, *, rng: np.random.Generator) -> NDArray[np.int64]:
    """k tasks uniformly at random without replacement; indices of shape (k,)."""
    return draw_seed(candidates.size, candidates.how_many(k), rng=rng).index
