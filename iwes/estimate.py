"""Honest estimates: what the labels of a draw say about the pool they were drawn from, with an interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from iwes.errors import BadArgument, BadInclusion, BadLabels
from iwes.interval import two_sided, wilson
from iwes.weight import effective_size

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A mean over the pool and its confidence interval."""

    value: float
    low: float
    high: float
    effective_size: float  # Kish's (Σw)²/Σw² of the weights 1/π
    standard_error: float = math.nan
    plain_labels: float = math.nan  # uniformly drawn labels that would be as informative; NaN for unbounded values
    limits: tuple[float, float] | None = (0.0, 1.0)  # between what the mean must lie; None: anything

    def at(self, confidence: float) -> "Estimate":
        """The same estimate with its interval at another confidence."""
        quantile = two_sided(confidence, self.effective_size - 1.0)
        if self.limits is None:
            half = quantile * self.standard_error
            return replace(self, low=self.value - half, high=self.value + half)
        bottom, span = self.limits[0], self.limits[1] - self.limits[0]
        if span <= 0.0:
            return replace(self, low=self.value, high=self.value)
        low, high = wilson(min(1.0, max(0.0, (self.value - bottom) / span)), self.plain_labels, quantile)
        return replace(self, low=bottom + span * low, high=bottom + span * high)


def estimate_mean(
    values: ArrayLike,
    inclusion: ArrayLike,
    *,
    confidence: float = 0.95,
    examined: int | None = None,
    pool_size: int | None = None,
) -> Estimate:
    """The Hájek mean Σ(v/π)/Σ(1/π) over the pool of `values` (n,) whose tasks were drawn with chance π (n,).

    Pass the batch of one draw, without its reserve, and what the draw says of it: `examined` and `pool_size` tell
    how much of the pool the draw got to see, which adds to the variance where that is a part. Left out, all of it.

    Values within [0, 1] (right or wrong, of this class or not) get a Wilson interval on the number of plain
    labels that would have the same variance; to keep that variance honest where one answer was rarely or never
    seen, two labels of typical heavy weight, one of each answer, are added to it. Other values get a Student
    interval. With every π = 1 and the whole pool examined the interval is the point itself.
    """
    v, pi = _check(values, inclusion)
    return _mean(v, pi, _unseen(examined, pool_size), confidence)


def estimate_within(
    values: ArrayLike,
    within: ArrayLike,
    inclusion: ArrayLike,
    *,
    confidence: float = 0.95,
    examined: int | None = None,
    pool_size: int | None = None,
) -> Estimate:
    """The mean of `values` (n,) over that part of the pool for which `within` (n,) is true, such as one class.

    How large the part is has to be estimated too, so this is a ratio of two means, Σ(vd/π)/Σ(d/π). Linearised about
    itself, its variance is the one that `estimate_mean` has for the labels within alone, with what the draw did not
    see counting for more, as the part is smaller than the pool.
    """
    v, pi = _check(values, inclusion)
    d = np.asarray(within, dtype=bool)
    if d.shape != v.shape or not d.any():
        raise BadArgument(
            f"within has shape {d.shape}, {int(d.sum())} of them true: expected {v.shape}, 1 or more true"
        )
    share = float((1.0 / pi[d]).sum() / (1.0 / pi).sum())
    return _mean(v[d], pi[d], _unseen(examined, pool_size) / share, confidence)


def class_balance(
    labels: ArrayLike,
    inclusion: ArrayLike,
    classes: int,
    *,
    confidence: float = 0.95,
    examined: int | None = None,
    pool_size: int | None = None,
) -> list[Estimate]:
    """The share of each class 0 … classes − 1 in the pool, from `labels` (n,) drawn with `inclusion` (n,).

    The shares sum to 1; each interval holds by itself.
    """
    label = np.asarray(labels)
    bad = np.flatnonzero((label < 0) | (label >= classes))
    if bad.size:
        raise BadLabels(f"labels[{bad[0]}] is {label[bad[0]]}: expected a class from 0 to {classes - 1}")
    pi = _check(label, inclusion)[1]
    is_of = (label[:, None] == np.arange(classes)).astype(np.float64)
    return _shares(is_of, pi, _unseen(examined, pool_size), confidence)


def with_known(
    estimate: Estimate, *, remaining: int, known_sum: float, known: int, confidence: float = 0.95
) -> Estimate:
    """The mean over `known` tasks whose values sum to `known_sum` and `remaining` others that `estimate` speaks of.

    Only the remaining part is uncertain: the interval shrinks to a point as the labelled part becomes the pool.
    """
    total = remaining + known
    if remaining < 0 or known < 0 or total == 0 or estimate.limits is None:
        raise BadArgument(f"remaining is {remaining}, known {known}: expected counts, and an estimate of a share")
    share = remaining / total
    moved = replace(
        estimate,
        value=(known_sum + remaining * estimate.value) / total,
        standard_error=share * estimate.standard_error,
        limits=(
            (known_sum + remaining * estimate.limits[0]) / total,
            (known_sum + remaining * estimate.limits[1]) / total,
        ),
    )
    return moved.at(confidence)


def combine(estimates: Sequence[Estimate], share: ArrayLike, *, confidence: float = 0.95) -> Estimate:
    """One estimate from those of several rounds, all of the same quantity, weighted by `share` (rounds,).

    Fix the shares before looking at labels, in proportion to batch sizes for example: then the errors of the rounds
    are uncorrelated, each draw's coins being tossed after the last, and the variances add up. The quantity
    must be the same in every round, such as a class's share of the whole pool (`with_known`); the accuracies of two
    models are two quantities.
    """
    c = np.asarray(share, dtype=np.float64)
    if not estimates or c.shape != (len(estimates),) or not (c >= 0.0).all() or c.sum() <= 0.0:
        raise BadArgument(f"share has shape {c.shape} for {len(estimates)} estimates: one share ≥ 0 each, not all 0")
    if any(e.limits is None for e in estimates):
        raise BadArgument("estimates: only estimates of shares, within [0, 1], can be combined")
    c = c / c.sum()
    error = np.array([e.standard_error for e in estimates])
    value = float(c @ [e.value for e in estimates])
    variance = float(c**2 @ error**2)
    # The variance of one plain label: of the mean itself or, near 0 and 1, as the rounds saw it.
    seen = [e.plain_labels * e.standard_error**2 if e.standard_error > 0.0 else 0.0 for e in estimates]
    single = max(value * (1.0 - value), float(c @ seen))
    return Estimate(
        value=value,
        low=value,
        high=value,
        effective_size=1.0 / float((c**2 / [e.effective_size for e in estimates]).sum()),
        standard_error=math.sqrt(variance),
        plain_labels=single / variance if variance > 0.0 else math.inf,
    ).at(confidence)


def _mean(v: Floats, pi: Floats, unseen: float, confidence: float) -> Estimate:
    if v.min() >= 0.0 and v.max() <= 1.0:
        return _shares(v[:, None], pi, unseen, confidence)[0]
    w = 1.0 / pi
    mean = float(w @ v) / float(w.sum())
    variance = float(_variance(v[:, None], pi, np.array([mean]), unseen)[0]) * len(v) / max(1, len(v) - 1)
    return Estimate(mean, mean, mean, effective_size(w), math.sqrt(variance), limits=None).at(confidence)


def _shares(v: Floats, pi: Floats, unseen: float, confidence: float) -> list[Estimate]:
    """Of each column of `v` (n, columns), whose values are within [0, 1]."""
    w = 1.0 / pi
    mean = w @ v / w.sum()
    size = effective_size(w)
    heavy = min(1.0, float(w @ w) / float((w**3).sum()))  # the π of a label that matters to the variance
    v, pi = np.vstack([v, np.zeros_like(v[:1]), np.ones_like(v[:1])]), np.append(pi, [heavy, heavy])
    middle = (1.0 / pi) @ v / (1.0 / pi).sum()
    variance = _variance(v, pi, middle, unseen)
    labels = np.divide(middle * (1.0 - middle), variance, out=np.full_like(variance, math.inf), where=variance > 0.0)
    figures = zip(mean.tolist(), np.sqrt(variance).tolist(), labels.tolist(), strict=True)
    return [Estimate(m, m, m, size, error, plain).at(confidence) for m, error, plain in figures]


def _unseen(examined: int | None, pool_size: int | None) -> float:
    """How much the part of the pool that the draw did not see adds to the variance, for a variance of 1."""
    if (examined is None) != (pool_size is None) or (examined and pool_size and not 0 < examined <= pool_size):
        raise BadArgument(f"examined is {examined}, pool_size {pool_size}: give both, examined from 1 to pool_size")
    return 1.0 / examined - 1.0 / pool_size if examined and pool_size else 0.0


def _variance(v: Floats, pi: Floats, mean: Floats, unseen: float) -> Floats:
    """Of each column's Hájek mean: that of the coins, and that of the part of the pool the draw happened to see."""
    w = 1.0 / pi
    mass = w.sum()
    square: Floats = (v - mean) ** 2
    variance: Floats = ((1.0 - pi) * w**2) @ square / mass**2 + unseen * (w @ square) / mass
    return variance


def _check(values: ArrayLike, inclusion: ArrayLike) -> tuple[Floats, Floats]:
    v = np.asarray(values, dtype=np.float64)
    pi = np.asarray(inclusion, dtype=np.float64)
    if v.ndim != 1 or v.shape != pi.shape or not v.size:
        raise BadArgument(f"values has shape {v.shape}, inclusion {pi.shape}: expected (n,) both, 1 label or more")
    bad = np.flatnonzero(~np.isfinite(v))
    if bad.size:
        raise BadArgument(f"values[{bad[0]}] is {v[bad[0]]}: leave out tasks without a label")
    bad = np.flatnonzero(~((pi > 0.0) & (pi <= 1.0)))
    if bad.size:
        raise BadInclusion(f"inclusion[{bad[0]}] is {pi[bad[0]]}: expected above 0 and at most 1, see Draw.inclusion")
    return v, pi
