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
from iwes.estimate import Doubt, Estimate, check, typical, unseen
from iwes.weight import effective_size

Floats = NDArray[np.float64]

HALF_OFF = 0.5
"""By how much the model may be off about a class at a task like those drawn, either way, without our having seen it."""


def assisted_mean(
    values: ArrayLike,
    inclusion: ArrayLike,
    expected: ArrayLike,
    expected_of_pool: float,
    *,
    confidence: float = 0.95,
    examined: int | None = None,
    pool_size: int | None = None,
    asked_about: int | None = None,
) -> Estimate:
    """The mean over the pool of `values` (n,) within [0, 1] whose tasks were drawn with chance π (n,).

    `expected` (n,) is what the model expected of each, `expected_of_pool` the mean of what it expects of every task
    that the draw looked at: to estimate accuracy, both are the probability of its own answer. A draw with a reserve or
    by blocks looks at more tasks than were `examined` for its batch: `asked_about` tells how many.

    Wilson's interval on the number of plain labels that would have the variance of the differences, with one more label
    of either kind, wholly unexpected, of the weight that such labels have: errors hide among the few, heavy tasks that
    the model is sure of.
    """
    v, pi = check(values, inclusion)
    m = np.asarray(expected, dtype=np.float64)
    if m.shape != v.shape or not np.isfinite(m).all() or not math.isfinite(expected_of_pool):
        raise BadArgument(f"expected has shape {m.shape}, expected_of_pool is {expected_of_pool}: one number per value")
    w, off = 1.0 / pi, (v - m)[:, None]
    heavy = np.full(1, float((w**3).sum()) / float(w @ w))
    unexpected = typical(np.maximum(-off, 0.0), w, heavy), typical(np.maximum(off, 0.0), w, heavy)
    pool = np.array([expected_of_pool], np.float64)
    parts = _unseen(examined, pool_size, asked_about)
    return _assisted(v[:, None], m[:, None], pool, w, parts, 1.0, *unexpected, confidence)[0]


def assisted_balance(
    labels: ArrayLike,
    inclusion: ArrayLike,
    beliefs: ArrayLike,
    beliefs_of_pool: ArrayLike,
    *,
    confidence: float = 0.95,
    examined: int | None = None,
    pool_size: int | None = None,
    asked_about: int | None = None,
) -> list[Estimate]:
    """The share of each class in the pool, from `labels` (n,), classes 0 … c − 1, drawn with `inclusion` (n,).

    `beliefs` (n, c) are the model's probabilities for the labelled tasks, `beliefs_of_pool` (c,) their mean over every
    task that the draw looked at. Where no model is off about one class alone for long, a guard smaller than that of
    `assisted_mean` will do: two labels of the median weight, by which the model is half off either way. Each interval
    holds by itself.
    """
    label, p, mean = np.asarray(labels), np.asarray(beliefs, np.float64), np.asarray(beliefs_of_pool, np.float64)
    if p.ndim != 2 or p.shape[:1] != label.shape or mean.shape != p.shape[1:]:
        raise BadArgument(f"beliefs has shape {p.shape}, beliefs_of_pool {mean.shape}: expected (labels, c) and (c,)")
    if not np.isfinite(p).all() or not np.isfinite(mean).all():
        raise BadArgument("beliefs and beliefs_of_pool: expected finite numbers")
    bad = np.flatnonzero((label < 0) | (label >= len(mean)))
    if bad.size:
        raise BadLabels(f"labels[{bad[0]}] is {label[bad[0]]}: expected a class from 0 to {len(mean) - 1}")
    w = 1.0 / check(label, inclusion)[1]
    is_of = (label[:, None] == np.arange(len(mean))).astype(np.float64)
    usual = np.full(len(mean), np.median(w))
    parts = _unseen(examined, pool_size, asked_about)
    return _assisted(is_of, p, mean, w, parts, HALF_OFF, usual, usual, confidence)


def _unseen(examined: int | None, pool_size: int | None, asked_about: int | None) -> tuple[float, float]:
    """How much the rest of the pool, unseen by the draw or by the model, adds to the variance for a variance of 1."""
    of_draw = unseen(examined, pool_size)
    return of_draw, of_draw if asked_about is None else min(of_draw, unseen(asked_about, pool_size))


def _assisted(
    v: Floats,
    m: Floats,
    of_pool: Floats,
    w: Floats,
    unseen: tuple[float, float],
    surprise: float,
    fewer: Floats,
    more: Floats,
    confidence: float,
) -> list[Estimate]:
    """Of each column of `v` and what was expected of it, `m`, both (n, columns). The variance is that of the coins of
    the differences, and of the part of the pool that the draw happened to see, with two more labels: one by `surprise`
    less than expected with the weight `fewer`, one by as much more with the weight `more`. Where the model was asked
    about more tasks than the draw examined, only the differences are unknown of these."""
    off = v - m
    value = np.clip(of_pool + w @ off / w.sum(), 0.0, 1.0)
    mass = w.sum() + fewer + more
    mean_off = (w @ off + surprise * (more - fewer)) / mass
    square, below, above = (off - mean_off) ** 2, (surprise + mean_off) ** 2, (surprise - mean_off) ** 2
    coins = ((w**2 - w) @ square + (fewer**2 - fewer) * below + (more**2 - more) * above) / mass**2
    spread_off = (w @ square + fewer * below + more * above) / mass
    mean = (w @ v + more) / mass
    spread = (w @ (v - mean) ** 2 + fewer * mean**2 + more * (1.0 - mean) ** 2) / mass
    of_draw, of_model = unseen
    variance = coins + of_model * spread + (of_draw - of_model) * spread_off
    labels = np.divide(mean * (1.0 - mean), variance, out=np.full_like(mean, math.inf), where=variance > 0.0)
    size, found = effective_size(w), []
    for at, error, plain in zip(value.tolist(), np.sqrt(variance).tolist(), labels.tolist(), strict=True):
        doubt = Doubt(error, plain)
        found.append(Estimate(at, at, at, size, doubt, doubt).at(confidence))
    return found
