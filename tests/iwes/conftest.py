"""Pools with a known truth, for tests that draw from them many times."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("iwes", max_examples=60, deadline=None)
settings.load_profile("iwes")

MakePool = Callable[..., tuple[np.ndarray, np.ndarray]]


@pytest.fixture
def make_pool() -> MakePool:
    """Scores (n,) and whether the model is right (n,); it errs more often where the score is high.

    With link "proportional" errors follow the score, with "half" every second error falls anywhere.
    """

    def make(size: int, mean_score: float, accuracy: float, link: str = "half") -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(5)
        score = rng.beta(1.5 * mean_score, 1.5 * (1 - mean_score), size)
        relative = score / score.mean()
        if link == "half":
            relative = 0.5 + 0.5 * relative
        right = rng.random(size) >= np.minimum(1.0, relative * (1 - accuracy))
        return score, right.astype(float)

    return make
