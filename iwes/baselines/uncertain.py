"""The k tasks the model is least sure of, by margin, by confidence or by entropy."""

import numpy as np
from numpy.typing import NDArray

from iwes.baselines.candidates import Candidates
from iwes.probability import checked_blocks, entropy, gap

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


def margin(candidates: Candidates, k: int, *, rng: np.random.Generator) -> Indices:
    """The k tasks with the smallest gap between the two likeliest classes, smallest first; shape (k,)."""
    count = candidates.how_many(k)
    return top(-gap(candidates.beliefs()), count)


def least_confident(candidates: Candidates, k: int, *, rng: np.random.Generator) -> Indices:
    """The k tasks whose likeliest class is least likely, least likely first; shape (k,)."""
    count = candidates.how_many(k)
    best = [block.max(axis=1) for _, block in checked_blocks(candidates.beliefs(), "probabilities")]
    return top(-np.concatenate(best), count)


def entropy_topk(candidates: Candidates, k: int, *, rng: np.random.Generator) -> Indices:
    """The k tasks of highest entropy, highest first; shape (k,)."""
    count = candidates.how_many(k)
    return top(entropy(candidates.beliefs()), count)


def top(score: Floats, k: int) -> Indices:
    """The places of the k highest scores, highest first; of equal scores the earlier one comes first."""
    if k < len(score):
        threshold = np.partition(score, len(score) - k)[len(score) - k]
        above = np.flatnonzero(score > threshold)
        level = np.flatnonzero(score == threshold)[: k - len(above)]
        chosen = np.concatenate([above, level])
    else:
        chosen = np.arange(len(score))
    return chosen[np.lexsort((chosen, -score[chosen]))]
