"""BADGE: tasks whose gradients are long and point apart, by k-means++ sampling of gradient embeddings."""

import numpy as np
from numpy.typing import NDArray

from iwes.baselines.candidates import Candidates
from iwes.baselines.geometry import Factored, Geometry
from iwes.baselines.nearest import Nearest
from iwes.errors import BadArgument
from iwes.probability import checked_blocks

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
PROPOSALS = 64  # tried before looking whether the bounds have become too loose
LOOSE = 0.5  # share of accepted proposals below which all bounds are brought up to date


def badge(candidates: Candidates, k: int, *, rng: np.random.Generator, partitions: int = 1) -> Indices:
    """k-means++ seeding on the gradients of the last layer; indices in the order of choice, shape (k,).

    A task's gradient is (p − onehot(argmax p)) ⊗ features. The first choice has the longest gradient; each further
    one is drawn with probability proportional to the squared distance to the nearest choice so far. With
    `partitions` above 1 the pool is cut at random into so many parts of equal size, each giving its share of k.

    Exact, though distances are looked at lazily: a task is proposed by an outdated distance D' ≥ D and accepted
    with probability D/D', which leaves it drawn in proportion to D.
    """
    count = candidates.how_many(k)
    if not 1 <= partitions <= count:
        raise BadArgument(f"partitions is {partitions}: expected from 1 to the {count} tasks to choose")
    slope = np.concatenate([block for _, block in checked_blocks(candidates.beliefs(), "probabilities")])
    slope[np.arange(len(slope)), slope.argmax(axis=1)] -= 1.0
    features = candidates.vectors()
    if partitions == 1:
        return spread(Factored(slope, features), count, rng=rng)
    parts = np.array_split(rng.permutation(len(features)), partitions)
    share = [len(part) for part in np.array_split(np.arange(count), partitions)]
    return np.concatenate(
        [part[spread(Factored(slope[part], features[part]), n, rng=rng)] for part, n in zip(parts, share, strict=True)]
    )


def spread(geometry: Geometry, k: int, *, rng: np.random.Generator, bound: Floats | None = None) -> Indices:
    """k different points by k-means++ seeding (D² sampling) after the one farthest from the origin; shape (k,).

    `bound` (n,) are squared distances to keep in mind besides, such as to points chosen earlier.
    """
    nearest = Nearest(geometry, np.full(len(geometry.norm), np.inf) if bound is None else bound.copy())
    nearest.choose(int(np.argmax(geometry.norm)))
    while len(nearest.chosen) < k:
        nearest.refresh()
        edges = np.cumsum(nearest.bound)
        if edges[-1] <= 0.0:  # nothing but doubles of chosen points is left
            free = np.flatnonzero(nearest.free)
            return np.concatenate([nearest.chosen, rng.permutation(free)[: k - len(nearest.chosen)]])
        # The proposals stay tied to the bounds of this moment; only what they are compared with moves on.
        start = nearest.bound.copy()
        accepted = PROPOSALS
        while len(nearest.chosen) < k and accepted >= LOOSE * PROPOSALS:
            accepted = _propose(nearest, edges, start, k, rng)
    return np.array(nearest.chosen)


def _propose(nearest: Nearest, edges: Floats, bound: Floats, k: int, rng: np.random.Generator) -> int:
    """Try a run of proposals drawn in proportion to `bound`; returns how many were chosen."""
    proposals = np.searchsorted(edges, rng.random(PROPOSALS) * edges[-1], side="right")
    proposals = np.minimum(proposals, len(edges) - 1)
    hurdle = rng.random(PROPOSALS) * bound[proposals]
    distance = nearest.exact(proposals)
    among = nearest.geometry.square(proposals, proposals)
    accepted = 0
    for i, point in enumerate(proposals.tolist()):
        if len(nearest.chosen) < k and nearest.free[point] and hurdle[i] < distance[i]:
            nearest.choose(point)
            np.minimum(distance, among[i], out=distance)
            accepted += 1
    return accepted
