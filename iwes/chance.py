"""From a score to the probability of a task's first coin."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from iwes.errors import BadArgument, BadScore

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Scaling = Literal["stream", "pool"]


@dataclass(frozen=True)
class Chance:
    """p = min(1, factor · max(floor, score ** sharpness)), in [0, 1].

    The factor is 1, or, scaled to a pool, whatever makes the probabilities sum to the size of the batch. The
    floor comes before the factor, so that it bounds the ratio of any two probabilities in either case.
    """

    floor: float = 0.05
    sharpness: float = 1.0
    scaling: Scaling = "stream"
    factor: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.floor <= 1.0:
            raise BadArgument(f"floor is {self.floor}: expected a probability between 0 and 1 (0 for the paper's draw)")
        if not 0.0 < self.sharpness < math.inf:
            raise BadArgument(f"sharpness is {self.sharpness}: expected a number above 0 (1 leaves scores as they are)")
        if self.scaling not in ("stream", "pool"):
            raise BadArgument(f'scaling is "{self.scaling}": expected "stream" or "pool"')

    def of(self, score: Floats) -> Floats:
        """The probability of each checked score; shape (n,)."""
        wish = self._wish(score)
        if self.factor == math.inf:
            return (wish > 0.0).astype(np.float64)
        return np.minimum(wish * self.factor, 1.0)

    def scaled_to(self, score: Floats, k: int) -> "Chance":
        """The same with the factor for which the probabilities of these tasks, the whole pool, sum to k."""
        return Chance(self.floor, self.sharpness, self.scaling, pool_factor(self._wish(score), k))

    def check(self, score: ArrayLike, index: Indices | None = None) -> Floats:
        """The scores of the tasks `index` (all, if left out) as floats; raises `BadScore` naming a bad one."""
        value = np.asarray(score, dtype=np.float64)
        if index is not None and value.shape != index.shape:
            raise BadScore(f"scores of shape {value.shape} for {len(index)} tasks: expected one score per task, (n,)")
        top = 1.0 + 1e-6 if self.scaling == "stream" else np.finfo(np.float64).max
        if value.size and not (value.min() >= 0.0 and value.max() <= top):  # false for NaN, too
            bad = int(np.flatnonzero(~((value >= 0.0) & (value <= top)))[0])
            range_ = '0 to 1 (scaling="pool" takes larger ones)' if self.scaling == "stream" else "finite and 0 or more"
            task = bad if index is None else index[bad]
            raise BadScore(f"the score of task {task} is {value[bad]}: expected {range_}")
        return value

    def _wish(self, score: Floats) -> Floats:
        sharp = score if self.sharpness == 1.0 else score**self.sharpness
        return np.maximum(sharp, self.floor)


def pool_factor(score: ArrayLike, k: int) -> float:
    """The c for which Σ min(1, c · score) = k; infinite where no more than k scores are above zero."""
    rest = np.asarray(score, dtype=np.float64)
    rest = rest[rest > 0.0]
    certain = 0
    while len(rest) + certain > k:
        factor = (k - certain) / float(rest.sum())
        uncertain = rest * factor < 1.0
        if uncertain.all():
            return factor
        certain += len(rest) - int(uncertain.sum())
        rest = rest[uncertain]
    return math.inf


def growth(finished_passes: int) -> float:
    """What a probability is multiplied by after so many passes over the pool."""
    return 1.0 + finished_passes / 10.0


def inclusion(first: ArrayLike, exposures: ArrayLike) -> Floats:
    """π = 1 − Π(1 − p_j) over the passes 0 … exposures − 1, p_j = min(1, first · (1 + j/10)).

    `first` (n,) holds the probabilities of the first pass, `exposures` (n,) how many coins each task was tossed.
    Returns shape (n,), in [0, 1]; exactly `first` after one coin.
    """
    p = np.asarray(first, dtype=np.float64)
    count = np.broadcast_to(np.asarray(exposures, dtype=np.int64), p.shape)
    pi = np.zeros(p.shape)
    for j in range(int(count.max(initial=0))):
        # Adding up keeps tiny probabilities exact, which 1 − Π(1 − p) would round away.
        pi = np.where(count > j, pi + (1.0 - pi) * np.minimum(p * growth(j), 1.0), pi)
    return np.minimum(pi, 1.0)
