"""Cluster-Margin and IWeS with diversity: many uncertain tasks first, then a few from each of their clusters."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from iwes.baselines.candidates import Candidates
from iwes.baselines.linkage import average_linkage
from iwes.baselines.uncertain import top
from iwes.errors import BadArgument
from iwes.probability import entropy, gap
from iwes.stream import draw

Indices = NDArray[np.int64]


def cluster_margin(
    candidates: Candidates,
    k: int,
    *,
    rng: np.random.Generator,
    oversample: float = 4.0,
    clusters: ArrayLike | None = None,
) -> Indices:
    """Of the `oversample` · k tasks of smallest margin, take turns among their clusters, smallest cluster first.

    `clusters` (n,) numbers the cluster of every task, computed once for the whole pool as in the paper of
    Citovsky and others (2021). Without it the oversampled tasks themselves are clustered into k by average linkage,
    which needs no pass over the pool's pairs. Returns indices of shape (k,).
    """
    count = candidates.how_many(k)
    wide = _oversampled(count, oversample, candidates.size)
    return _diverse(top(-gap(candidates.beliefs()), wide), count, candidates, clusters, rng)


def iwes_diverse(
    candidates: Candidates,
    k: int,
    *,
    rng: np.random.Generator,
    oversample: float = 4.0,
    clusters: ArrayLike | None = None,
    floor: float = 0.05,
    sharpness: float = 1.0,
) -> Indices:
    """Cluster-Margin with the margin replaced by an IWeS-ent draw of `oversample` · k tasks; indices (k,).

    Taking turns among clusters changes the chance of a task in ways nobody can write down, so these tasks train but
    do not estimate.
    """
    count = candidates.how_many(k)
    wide = _oversampled(count, oversample, candidates.size)
    drawn = draw(entropy(candidates.beliefs()), wide, rng=rng, floor=floor, sharpness=sharpness).index
    return _diverse(drawn, count, candidates, clusters, rng)


def _oversampled(k: int, oversample: float, size: int) -> int:
    if not oversample >= 1.0:
        raise BadArgument(f"oversample is {oversample}: expected 1 or more tasks to choose each one from")
    return min(size, int(np.ceil(k * oversample)))


def _diverse(
    wide: Indices, k: int, candidates: Candidates, clusters: ArrayLike | None, rng: np.random.Generator
) -> Indices:
    if clusters is None:
        cluster = average_linkage(candidates.vectors()[wide], min(k, len(wide)))
    else:
        known = np.asarray(clusters)
        if known.shape != (candidates.size,):
            raise BadArgument(f"clusters has shape {known.shape}: expected one number per task, ({candidates.size},)")
        cluster = np.unique(known[wide], return_inverse=True)[1]
    return wide[take_turns(cluster, k, rng=rng)]


def take_turns(cluster: Indices, k: int, *, rng: np.random.Generator) -> Indices:
    """k places, one random member of each cluster per turn, smaller clusters before larger ones; shape (k,)."""
    shuffled = rng.permutation(len(cluster))
    size = np.bincount(cluster)
    by_cluster = shuffled[np.argsort(cluster[shuffled], kind="stable")]
    start = np.cumsum(size) - size
    turn = np.arange(len(cluster)) - start[cluster[by_cluster]]
    order = np.lexsort((cluster[by_cluster], size[cluster[by_cluster]], turn))
    return by_cluster[order][:k]
