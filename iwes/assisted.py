"""Estimates that a model helps with: what it expects of the whole pool, corrected by where the labels prove it wrong.

IWeS asks most often where the model hesitates, and that is where its expectations are off. So what is left to be
estimated from the few, heavy labels of tasks it is sure of is next to nothing, and the error shrinks. However wrong
the model is, the estimate stays right on average (the difference estimator of survey sampling): a poor model costs
precision, never honesty. It must have been trained before these labels were seen, as the one that chose them was.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from iwes.errors import BadArgument, BadLabels
from iwes.estimate import Doubt, Estimate, check, unseen
from iwes.weight import effective_size

Floats = NDArray[np.float64]


def assisted_mean(
    values: ArrayLike,
    inclusion: ArrayLike,
    expected: ArrayLike,
    expected_of_pool: float,
    *,
    confidence: float = 0.95,
    examined: int | None = None,
    pool_size: int | None = None,
) -> Estimate:
    """The mean over the pool of `values` (n,) within [0, 1] whose tasks were drawn with chance π (n,).

    `expected` (n,) is what the model expected of each, `expected_of_pool` the mean of what it expects of every task
    that the draw looked at: to estimate accuracy, both are the probability of its own answer. Student's interval on
    the weighted differences, cut off at 0 and 1.
    """
    v, pi = check(values, inclusion)
    m = np.asarray(expected, dtype=np.float64)
    if m.shape != v.shape or not np.isfinite(m).all() or not math.isfinite(expected_of_pool):
        raise BadArgument(f"expected has shape {m.shape}, expected_of_pool is {expected_of_pool}: one number per value")
    w = 1.0 / pi
    mass, off = float(w.sum()), v - m
    mean_off = float(w @ off) / mass
    value = expected_of_pool + mean_off
    spread = float(w @ (v - float(w @ v) / mass) ** 2) / mass
    variance = float((w**2 - w) @ (off - mean_off) ** 2) / mass**2 * len(v) / max(1, len(v) - 1)
    doubt = Doubt(math.sqrt(variance + unseen(examined, pool_size) * spread))
    made = Estimate(value, value, value, effective_size(w), doubt, doubt, limits=None).at(confidence)
    value, low, high = (min(1.0, max(0.0, bound)) for bound in (made.value, made.low, made.high))
    return Estimate(value, low, high, made.effective_size, doubt, doubt, limits=None)


def assisted_balance(
    labels: ArrayLike,
    inclusion: ArrayLike,
    beliefs: ArrayLike,
    beliefs_of_pool: ArrayLike,
    *,
    confidence: float = 0.95,
    examined: int | None = None,
    pool_size: int | None = None,
) -> list[Estimate]:
    """The share of each class in the pool, from `labels` (n,), classes 0 … c − 1, drawn with `inclusion` (n,).

    `beliefs` (n, c) are the model's probabilities for the labelled tasks, `beliefs_of_pool` (c,) their mean over every
    task that the draw looked at. Each interval holds by itself.
    """
    label, p, mean = np.asarray(labels), np.asarray(beliefs, np.float64), np.asarray(beliefs_of_pool, np.float64)
    if p.ndim != 2 or p.shape[:1] != label.shape or mean.shape != p.shape[1:]:
        raise BadArgument(f"beliefs has shape {p.shape}, beliefs_of_pool {mean.shape}: expected (labels, c) and (c,)")
    bad = np.flatnonzero((label < 0) | (label >= len(mean)))
    if bad.size:
        raise BadLabels(f"labels[{bad[0]}] is {label[bad[0]]}: expected a class from 0 to {len(mean) - 1}")
    return [
        assisted_mean(
            label == one,
            inclusion,
            p[:, one],
            float(mean[one]),
            confidence=confidence,
            examined=examined,
            pool_size=pool_size,
        )
        for one in range(len(mean))
    ]
