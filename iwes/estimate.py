"""Honest estimates: what the labels of a draw say about the pool they were drawn from, with an interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from iwes.errors import BadArgument, BadInclusion, BadLabels
from iwes.interval import two_sided, wilson
from iwes.weight import effective_size

Floats = NDArray[np.float64]

HEAVY_ONES = 2.0
"""So many labels of an answer must be seen before their own weights count as much as the heavy one of all labels."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """How uncertain a mean is on one side."""

    error: float
    """Its standard error."""
    labels: float = math.nan
    """Uniformly drawn labels that would be as informative; NaN for unbounded values."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over the pool and its confidence interval."""

    value: float
    low: float
    high: float
    effective_size: float  # Kish's (Σw)²/Σw² of the weights 1/π
    below: Doubt
    above: Doubt
    limits: tuple[float, float] | None = (0.0, 1.0)  # between what the mean must lie; None: anything

    @property
    def worth(self) -> float:
        """Uniformly drawn labels that would be as informative, on the side where they are fewer."""
        return min(self.below.labels, self.above.labels)

    @property
    def standard_error(self) -> float:
        """On the side where it is larger."""
        return max(self.below.error, self.above.error)

    def at(self, confidence: float) -> "Estimate":
        """The same estimate with its interval at another confidence."""
        quantile = two_sided(confidence, self.effective_size - 1.0)
        if self.limits is None:
            low, high = self.value - quantile * self.below.error, self.value + quantile * self.above.error
            return self._between(low, high)
        bottom, span = self.limits[0], self.limits[1] - self.limits[0]
        if span <= 0.0:
            return self._between(self.value, self.value)
        share = min(1.0, max(0.0, (self.value - bottom) / span))
        low = wilson(share, self.below.labels, quantile)[0]
        high = wilson(share, self.above.labels, quantile)[1]
        return self._between(bottom + span * low, bottom + span * high)

    def _between(self, low: float, high: float) -> "Estimate":
        """By hand: `replace` takes several times as long, and a project has thousands of estimates."""
        return Estimate(self.value, low, high, self.effective_size, self.below, self.above, self.limits)


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
    labels that would have the same variance. To keep that variance honest where one answer was rarely or never
    seen, one label of each answer is added to it: for each bound, the answer that would move the mean beyond it
    with a typical heavy weight, the other with the weight that those seen have. Other values get a Student
    interval. With every π = 1 and the whole pool examined the interval is the point itself.
    """
    v, pi = check(values, inclusion)
    return _mean(v, pi, unseen(examined, pool_size), confidence)


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
    v, pi = check(values, inclusion)
    d = np.asarray(within, dtype=bool)
    if d.shape != v.shape or not d.any():
        raise BadArgument(
            f"within has shape {d.shape}, {int(d.sum())} of them true: expected {v.shape}, 1 or more true"
        )
    share = float((1.0 / pi[d]).sum() / (1.0 / pi).sum())
    return _mean(v[d], pi[d], unseen(examined, pool_size) / share, confidence)


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
    pi = check(label, inclusion)[1]
    is_of = (label[:, None] == np.arange(classes)).astype(np.float64)
    return _shares(is_of, 1.0 / pi, unseen(examined, pool_size), confidence)


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
    value = (known_sum + remaining * estimate.value) / total
    return Estimate(
        value=value,
        low=value,
        high=value,
        effective_size=estimate.effective_size,
        below=Doubt(share * estimate.below.error, estimate.below.labels),
        above=Doubt(share * estimate.above.error, estimate.above.labels),
        limits=(
            (known_sum + remaining * estimate.limits[0]) / total,
            (known_sum + remaining * estimate.limits[1]) / total,
        ),
    ).at(confidence)


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
    value = float(c @ [e.value for e in estimates])
    return Estimate(
        value=value,
        low=value,
        high=value,
        effective_size=1.0 / float((c**2 / [e.effective_size for e in estimates]).sum()),
        below=_combined([e.below for e in estimates], c, value),
        above=_combined([e.above for e in estimates], c, value),
    ).at(confidence)


def _combined(doubts: Sequence[Doubt], c: Floats, value: float) -> Doubt:
    variance = float(c**2 @ np.array([doubt.error for doubt in doubts]) ** 2)
    # The variance of one plain label: of the mean itself or, near 0 and 1, as the rounds saw it.
    seen = [doubt.labels * doubt.error**2 if doubt.error > 0.0 else 0.0 for doubt in doubts]
    single = max(value * (1.0 - value), float(c @ seen))
    return Doubt(math.sqrt(variance), single / variance if variance > 0.0 else math.inf)


def _mean(v: Floats, pi: Floats, unseen: float, confidence: float) -> Estimate:
    w = 1.0 / pi
    if v.min() >= 0.0 and v.max() <= 1.0:
        return _shares(v[:, None], w, unseen, confidence)[0]
    mean, mass = float(w @ v) / float(w.sum()), float(w.sum())
    square = (v - mean) ** 2
    variance = float((w**2 - w) @ square) / mass**2 + unseen * float(w @ square) / mass
    doubt = Doubt(math.sqrt(variance * len(v) / max(1, len(v) - 1)))
    return Estimate(mean, mean, mean, effective_size(w), doubt, doubt, limits=None).at(confidence)


def _shares(v: Floats, w: Floats, unseen: float, confidence: float) -> list[Estimate]:
    """Of each column of `v` (n, columns), whose values are within [0, 1], by the weights 1/π."""
    matters = float((w**3).sum()) / float(w @ w)  # the weight of a label that matters to the variance
    heavy = np.full(v.shape[1], matters)
    below = _doubts(v, w, unseen, zero=heavy, one=typical(v, w, heavy))
    above = _doubts(v, w, unseen, zero=typical(1.0 - v, w, heavy), one=heavy)
    size, means = effective_size(w), (w @ v / w.sum()).tolist()
    return [Estimate(m, m, m, size, b, a).at(confidence) for m, b, a in zip(means, below, above, strict=True)]


def typical(share: Floats, w: Floats, heavy: Floats) -> Floats:
    """The weight, as far as it matters to the variance, of the labels of one answer; some heavy ones are added."""
    seen, square = share.sum(axis=0), w**2 @ share
    own = np.divide(w**3 @ share, square, out=heavy.copy(), where=square > 0.0)
    typical: Floats = (seen * own + HEAVY_ONES * heavy) / (seen + HEAVY_ONES)
    return typical


def _doubts(v: Floats, w: Floats, unseen: float, *, zero: Floats, one: Floats) -> list[Doubt]:
    """By the variance of the coins, and of the part of the pool the draw happened to see, with two more labels: a 0 and
    a 1 of these weights."""
    mass = w.sum() + zero + one
    mean = (w @ v + one) / mass
    square = (v - mean) ** 2
    coins = (w**2 - w) @ square + (zero**2 - zero) * mean**2 + (one**2 - one) * (1.0 - mean) ** 2
    spread = w @ square + zero * mean**2 + one * (1.0 - mean) ** 2
    variance = coins / mass**2 + unseen * spread / mass
    labels = np.divide(mean * (1.0 - mean), variance, out=np.full_like(mean, math.inf), where=variance > 0.0)
    return [Doubt(*pair) for pair in zip(np.sqrt(variance).tolist(), labels.tolist(), strict=True)]


def unseen(examined: int | None, pool_size: int | None) -> float:
    """How much the part of the pool that the draw did not see adds to the variance, for a variance of 1."""
    if (examined is None) != (pool_size is None) or (examined and pool_size and not 0 < examined <= pool_size):
        raise BadArgument(f"examined is {examined}, pool_size {pool_size}: give both, examined from 1 to pool_size")
    return 1.0 / examined - 1.0 / pool_size if examined and pool_size else 0.0


def check(values: ArrayLike, inclusion: ArrayLike) -> tuple[Floats, Floats]:
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
