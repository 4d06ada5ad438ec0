"""A uniformly random order of the pool, worked out only as far as somebody asks for it."""

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
FIRST = 4096  # numbers drawn by the first extension; every later one doubles what is there


class RandomOrder:
    """A uniformly random permutation of 0 … size − 1 whose first m entries cost about m, not `size`.

    Drawn with replacement and stripped of repeats, numbers appear in a uniformly random order of first
    appearance; once half of the pool has appeared the rest is shuffled in one go, because from there on repeats
    would prevail. The steps depend on `size` alone, so the order is the same however it is read.
    """

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self.size = size
        self._rng = rng
        self._seen = np.zeros(size, dtype=np.bool_)
        self._known: Indices = np.empty(0, dtype=np.int64)

    def take(self, start: int, stop: int) -> Indices:
        """The tasks at positions `start` … `stop` − 1 of the order (fewer where the pool ends); shape (m,)."""
        while len(self._known) < min(stop, self.size):
            self._extend()
        return self._known[start:stop]

    def _extend(self) -> None:
        if 2 * max(len(self._known), FIRST) >= self.size:
            fresh = np.flatnonzero(~self._seen)
            self._rng.shuffle(fresh)
        else:
            drawn = self._rng.integers(0, self.size, size=max(len(self._known), FIRST))
            drawn = drawn[~self._seen[drawn]]
            _, first = np.unique(drawn, return_index=True)
            fresh = drawn[np.sort(first)]
        self._seen[fresh] = True
        self._known = np.concatenate([self._known, fresh])
