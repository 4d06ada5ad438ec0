"""Coreset: cover the feature space greedily, always with the task farthest from everything chosen so far."""

import numpy as np
from numpy.typing import NDArray

from iwes.baselines.candidates import Candidates
from iwes.baselines.geometry import Plain
from iwes.baselines.nearest import ROWS, Nearest

Floats = NDArray[np.float64]
PATIENCE = 4  # looks per choice, on average, before everything is brought up to date at once


def kcenter(candidates: Candidates, k: int, *, rng: np.random.Generator) -> NDArray[np.int64]:
    """Greedy k-center on `features`, starting from `labelled`; indices in the order of choice, shape (k,).

    Without labelled tasks the first one is random. Of equally far tasks the earliest is chosen. The same choices as
    the textbook's pass over the pool per choice: the farthest by its outdated distance is looked at again
    and chosen if it is still the farthest.
    """
    count = candidates.how_many(k)
    features = candidates.vectors()
    nearest = Nearest(Plain(features), _from_labelled(features, candidates.labelled_vectors()))
    if not np.isfinite(nearest.bound[0]):
        nearest.choose(int(rng.integers(len(features))))
        nearest.refresh()
    looks = 0
    while len(nearest.chosen) < count:
        nearest.bound[nearest.chosen[-1:]] = -1.0  # behind every task not chosen yet, even a double
        farthest = int(np.argmax(nearest.bound))
        distance = float(nearest.exact(np.array([farthest]))[0])
        looks += 1
        if distance >= nearest.bound[farthest]:
            nearest.choose(farthest)
        elif looks > PATIENCE * (len(nearest.pending) + 1):
            nearest.refresh()
            looks = 0
        else:
            nearest.bound[farthest] = distance
    return np.array(nearest.chosen)


def _from_labelled(features: Floats, labelled: Floats) -> Floats:
    """The squared distance of each task to the nearest labelled one; infinite where nothing is labelled."""
    bound = np.full(len(features), np.inf)
    norm = np.einsum("ij,ij->i", features, features)
    for first in range(0, len(labelled), ROWS):
        some = labelled[first : first + ROWS]
        some_norm = np.einsum("ij,ij->i", some, some)
        for start in range(0, len(features), ROWS):
            rows = slice(start, start + ROWS)
            square = norm[rows, None] + some_norm - 2.0 * (features[rows] @ some.T)
            bound[rows] = np.minimum(bound[rows], square.min(axis=1))
    return np.asarray(np.maximum(bound, 0.0))
