"""Average-linkage clustering of a few thousand points, by the nearest-neighbour chain."""

import numpy as np
from numpy.typing import NDArray

from iwes.baselines.geometry import Plain
from iwes.errors import BadArgument

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


def average_linkage(features: Floats, count: int) -> Indices:
    """Cut points (n, d) into `count` clusters by hierarchical clustering with average Euclidean linkage.

    Returns cluster numbers 0 … count − 1, shape (n,), numbered by first member. Takes 8 n² bytes and about n²
    steps: meant for the candidates of a batch, not for a pool of millions.
    """
    n = len(features)
    if not 1 <= count <= n:
        raise BadArgument(f"count is {count}: expected from 1 to the {n} points")
    merges = _merges(features)
    merges = merges[np.argsort(merges[:, 2], kind="stable")][: n - count]
    parent = np.arange(n)
    for one, other in merges[:, :2].astype(np.int64).tolist():
        parent[_root(parent, other)] = _root(parent, one)
    roots = np.array([_root(parent, i) for i in range(n)])
    _, first, inverse = np.unique(roots, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def _root(parent: Indices, i: int) -> int:
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = int(parent[i])
    return i


def _merges(features: Floats) -> Floats:
    """The n − 1 merges as rows (member of one cluster, member of the other, distance), in no particular order.

    Follow nearest neighbours until two are each other's, merge them, go on from where the chain was: for average
    linkage the same merges as always joining the closest pair, in n² steps instead of n³.
    """
    n = len(features)
    everyone = np.arange(n)
    distance = np.sqrt(Plain(features).square(everyone, everyone))
    np.fill_diagonal(distance, np.inf)
    size = np.ones(n)
    merges = np.empty((n - 1, 3))
    chain: list[int] = []
    for step in range(n - 1):
        if not chain:
            chain.append(int(np.flatnonzero(size)[0]))
        while True:
            tip = chain[-1]
            near = int(np.argmin(distance[tip]))
            if len(chain) > 1 and distance[tip, near] >= distance[tip, chain[-2]]:
                near = chain[-2]
                break
            chain.append(near)
        del chain[-2:]
        merges[step] = tip, near, distance[tip, near]
        joint = (size[tip] * distance[tip] + size[near] * distance[near]) / (size[tip] + size[near])
        joint[near] = np.inf
        distance[near], distance[:, near] = joint, joint
        distance[tip], distance[:, tip] = np.inf, np.inf
        size[near], size[tip] = size[near] + size[tip], 0.0
    return merges
