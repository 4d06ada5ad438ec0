"""Estimates that a model helps with: what it expects of the whole pool, corrected by where the labels prove it wrong.

IWeS asks most often where the model hesitates, and that is where its expectations are off. So what is left to be
estimated from the few, heavy labels of tasks it is sure of is next to nothing, and the error shrinks. However wrong
the model is, the estimate stays right on average (the difference estimator of survey sampling): a poor model costs
precision, never honesty. It must have been trained before these labels were seen, as the one that chose them was.

The model was asked about every task, also about those that show nothing, and nobody can answer. So tasks that were
drawn and skipped belong to the sample, too: `within` tells them from the others, whose mean is estimated.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from iwes.errors import BadArgument, BadLabels
from iwes.estimate import Doubt, Estimate, check, typical, unseen
from iwes.weight import effective_size

Floats = NDArray[np.float64]

HALF_OFF = 0.5
"""By how much the model may be off at a task like those drawn without our having seen it."""


class Surprise(NamedTuple):
    """A label that might have been drawn and was not: by how much it is off what was expected, and its weight in each
    column."""

    off: float
    weight: Floats


def assisted_mean(
    values: ArrayLike,
    inclusion: ArrayLike,
    expected: ArrayLike,
    expected_of_pool: float,
    *,
    within: ArrayLike | None = None,
    confidence: float = 0.95,
    examined: int | None = None,
    pool_size: int | None = None,
    asked_about: int | None = None,
) -> Estimate:
    """The mean over the pool of `values` (n,) within [0, 1] whose tasks were drawn with chance π (n,); with `within`
    (n,), over that part of the pool for which it is true, and values elsewhere are not looked at.

    `expected` (n,) is what the model expected of each, `expected_of_pool` the mean of what it expects of every task
    that the draw looked at: to estimate accuracy, both are the probability of its own answer. A draw with a reserve or
    by blocks looks at more tasks than were `examined` for its batch: `asked_about` tells how many.

    Wilson's interval on the number of plain labels that would have the variance of the differences, with two more
    labels of the weights that such labels have: one that is wholly less than expected, for errors hide among the few,
    heavy tasks that the model is sure of, and one that is half more.
    """
    d = _within(within, np.shape(values))
    v, pi = check(np.where(d, values, 0.0), inclusion)
    m = np.asarray(expected, dtype=np.float64)
    if m.shape != v.shape or not np.isfinite(m).all() or not math.isfinite(expected_of_pool):
        raise BadArgument(f"expected has shape {m.shape}, expected_of_pool is {expected_of_pool}: one number per value")
    w = 1.0 / pi
    sample = _Sample(v[:, None], m[:, None], np.array([expected_of_pool], np.float64), w, d)
    heavy = np.full(1, float((w**3).sum()) / float(w @ w))
    less = Surprise(-1.0, typical(np.maximum(-sample.off, 0.0), w, heavy))
    more = Surprise(HALF_OFF, typical(np.maximum(sample.off, 0.0), w, heavy))
    return _assisted(sample, _unseen(examined, pool_size, asked_about), less, more, confidence)[0]


def assisted_balance(
    labels: ArrayLike,
    inclusion: ArrayLike,
    beliefs: ArrayLike,
    beliefs_of_pool: ArrayLike,
    *,
    within: ArrayLike | None = None,
    confidence: float = 0.95,
    examined: int | None = None,
    pool_size: int | None = None,
    asked_about: int | None = None,
) -> list[Estimate]:
    """The share of each class in the pool, from `labels` (n,), classes 0 … c − 1, drawn with `inclusion` (n,); with
    `within` (n,), in that part of the pool for which it is true, and labels elsewhere are not looked at.

    `beliefs` (n, c) are the model's probabilities for the labelled tasks, `beliefs_of_pool` (c,) their mean over every
    task that the draw looked at. Where no model is off about one class alone for long, a guard smaller than that of
    `assisted_mean` will do: two labels of the median weight, by which the model is half off either way. Each interval
    holds by itself.
    """
    d = _within(within, np.shape(labels))
    label, p, mean = np.where(d, labels, 0), np.asarray(beliefs, np.float64), np.asarray(beliefs_of_pool, np.float64)
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
    less, more = Surprise(-HALF_OFF, usual), Surprise(HALF_OFF, usual)
    return _assisted(_Sample(is_of, p, mean, w, d), _unseen(examined, pool_size, asked_about), less, more, confidence)


def _within(within: ArrayLike | None, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    d = np.ones(shape, bool) if within is None else np.asarray(within, dtype=bool)
    if d.shape != shape or not d.any():
        raise BadArgument(f"within has shape {d.shape}, {int(d.sum())} of them true: expected {shape}, 1 or more true")
    return d


def _unseen(examined: int | None, pool_size: int | None, asked_about: int | None) -> tuple[float, float]:
    """How much the rest of the pool, unseen by the draw or by the model, adds to the variance for a variance of 1."""
    of_draw = unseen(examined, pool_size)
    return of_draw, of_draw if asked_about is None else min(of_draw, unseen(asked_about, pool_size))


@dataclass(frozen=True, eq=False)
class _Sample:
    v: Floats
    """(n, columns), like what was expected of it, `m`."""
    m: Floats
    of_pool: Floats
    w: Floats
    within: NDArray[np.bool_]

    @property
    def mean(self) -> Floats:
        return np.asarray(self.w[self.within] @ self.v[self.within] / self.w[self.within].sum())

    @property
    def off(self) -> Floats:
        """How far each is off what was expected: v − m, where all are within. What is not within says nothing of v, and
        as much as the others of m."""
        return self.about(self.mean) + self.mean - self.m

    def about(self, mean: Floats) -> Floats:
        """How far each moves the estimated mean of v away from this one."""
        share = self.w[self.within].sum() / self.w.sum()
        return np.asarray(self.within[:, None] * (self.v - mean) / share)


def _assisted(
    sample: _Sample, unseen: tuple[float, float], less: Surprise, more: Surprise, confidence: float
) -> list[Estimate]:
    """Of each column. The variance is that of the coins of the differences, and of the part of the pool that the draw
    happened to see, with two more labels, one less and one more than expected. Where the model was asked about more
    tasks than the draw examined, only the differences are unknown of these."""
    w, within, off = sample.w, sample.within, sample.off
    value = np.clip(sample.of_pool + w @ off / w.sum(), 0.0, 1.0)
    added = less.weight + more.weight
    mass = w.sum() + added
    mean_off = (w @ off + less.off * less.weight + more.off * more.weight) / mass
    mean = (w[within] @ sample.v[within] + more.weight) / (w[within].sum() + added)
    coins, spread_off = _weighed(w[:, None], off - mean_off)
    spread = w @ sample.about(mean) ** 2 + less.weight * mean**2 + more.weight * (1.0 - mean) ** 2
    for one in (less, more):
        of_coin, of_seen = _weighed(one.weight[None], (one.off - mean_off)[None])
        coins, spread_off = coins + of_coin, spread_off + of_seen
    of_draw, of_model = unseen
    variance = coins / mass**2 + of_model * spread / mass + (of_draw - of_model) * spread_off / mass
    labels = np.divide(mean * (1.0 - mean), variance, out=np.full_like(mean, math.inf), where=variance > 0.0)
    size, found = effective_size(w[within]), []
    for at, error, plain in zip(value.tolist(), np.sqrt(variance).tolist(), labels.tolist(), strict=True):
        doubt = Doubt(error, plain)
        found.append(Estimate(at, at, at, size, doubt, doubt).at(confidence))
    return found


def _weighed(w: Floats, off: Floats) -> tuple[Floats, Floats]:
    """What labels of these weights, so far off the mean, add to the variance of the coins, and to that of what was
    seen; of each column."""
    return ((w**2 - w) * off**2).sum(axis=0), (w * off**2).sum(axis=0)
