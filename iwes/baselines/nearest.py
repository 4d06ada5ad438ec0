"""How far each point is from the nearest chosen one, brought up to date only where it matters."""

import numpy as np
from numpy.typing import NDArray

from iwes.baselines.geometry import Geometry

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
ROWS = 2048  # points brought up to date together, so that the block stays in the cache


class Nearest:
    """Upper bounds of the squared distances to the nearest chosen point.

    Choosing more points can only shrink these distances, so what was true once stays an upper bound. `bound`
    holds such bounds, `pending` the points chosen since; `exact` looks at a few points, `refresh` at all of
    them in one matrix product instead of one pass over the pool per choice.
    """

    def __init__(self, geometry: Geometry, bound: Floats) -> None:
        self.geometry = geometry
        self.bound = bound
        self.pending: list[int] = []
        self.chosen: list[int] = []
        self.free = np.ones(len(bound), dtype=np.bool_)

    def choose(self, point: int) -> None:
        self.chosen.append(point)
        self.pending.append(point)
        self.free[point] = False
        self.bound[point] = 0.0

    def exact(self, points: Indices) -> Floats:
        """The distances of these points as of now; shape (m,)."""
        if not self.pending:
            return np.asarray(self.bound[points])
        to_pending = self.geometry.square(points, np.array(self.pending)).min(axis=1)
        return np.asarray(np.minimum(self.bound[points], to_pending))

    def refresh(self) -> None:
        """Make every bound exact."""
        if not self.pending:
            return
        columns = np.array(self.pending)
        for start in range(0, len(self.bound), ROWS):
            rows = slice(start, start + ROWS)
            np.minimum(self.bound[rows], self.geometry.square(rows, columns).min(axis=1), out=self.bound[rows])
        self.pending.clear()
