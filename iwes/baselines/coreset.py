"""Coreset: cover the feature space greedily, always with the task farthest from everything chosen so far."""

import numpy as np
from numpy.typing import NDArray

from iwes.baselines.candidates import Candidates
from iwes.baselines.geometry import Plain
from iwes.baselines.nearest import ROWS, Nearest

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
CHOSEN = -1.0  # in place of a distance: behind every task not chosen yet, even a double
FRONT = 512  # the farthest tasks, whose distances are kept exact between looks at the whole pool
WORTHWHILE = 8  # choices that a front should yield; the next one is larger if it did not


def kcenter(candidates: Candidates, k: int, *, rng: np.random.Generator) -> Indices:
    """Greedy k-center on `features`, starting from `labelled`; indices in the order of choice, shape (k,).

    Without labelled tasks the first one is random. Of equally far tasks the earliest is chosen. The same choices as
    the textbook's pass over the pool per choice: the farthest task of a front is the farthest of all as long
    as it is farther than any task outside has ever been.
    """
    count = candidates.how_many(k)
    features = candidates.vectors()
    nearest = Nearest(Plain(features), _from_labelled(features, candidates.labelled_vectors()))
    if not np.isfinite(nearest.bound[0]):
        nearest.choose(int(rng.integers(len(features))))
        nearest.refresh()
        nearest.bound[nearest.chosen] = CHOSEN
    size = FRONT
    while len(nearest.chosen) < count:
        before = len(nearest.chosen)
        _advance(nearest, features, min(size, len(features)), count)
        if len(nearest.chosen) < before + WORTHWHILE:
            size *= 2
    return np.array(nearest.chosen)


def _advance(nearest: Nearest, features: Floats, size: int, count: int) -> None:
    """Choose from the `size` tasks of largest bound until one outside of them might be farther."""
    inside = np.argpartition(nearest.bound, len(features) - size)[len(features) - size :]
    inside.sort()  # so that of equals the earliest is found first
    is_outside = np.ones(len(features), dtype=np.bool_)
    is_outside[inside] = False
    outside = float(nearest.bound[is_outside].max(initial=CHOSEN))
    distance = nearest.exact(inside)
    distance[nearest.bound[inside] == CHOSEN] = CHOSEN
    front = Plain(features[inside])
    while len(nearest.chosen) < count:
        best = int(np.argmax(distance))
        if distance[best] <= outside:
            break
        nearest.choose(int(inside[best]))
        np.minimum(distance, front.square(slice(None), np.array([best]))[:, 0], out=distance)
        distance[best] = CHOSEN
    nearest.bound[inside] = distance


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
