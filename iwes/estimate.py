"""Honest estimates: what the labels of one draw say about the pool they were drawn from, with an interval."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from iwes.errors import BadArgument, BadInclusion
from iwes.weight import effective_size


@dataclass(frozen=True)
class Estimate:
    """A mean over the pool, the ends of its confidence interval, and the effective number of labels behind it."""

    value: float
    low: float
    high: float
    effective_size: float


def estimate_mean(
    values: ArrayLike,
    inclusion: ArrayLike,
    *,
    confidence: float = 0.95,
    examined: int | None = None,
    pool_size: int | None = None,
) -> Estimate:
    """The Hájek mean Σ(v/π)/Σ(1/π) of `values` (n,) over the pool, drawn with `inclusion` π (n,)."""
    v = np.asarray(values, dtype=np.float64)
    pi = np.asarray(inclusion, dtype=np.float64)
    if v.ndim != 1 or v.shape != pi.shape or not v.size:
        raise BadArgument(
            f"values has shape {v.shape}, inclusion {pi.shape}: expected one of each per label, 1 or more"
        )
    bad = np.flatnonzero(~((pi > 0.0) & (pi <= 1.0)))
    if bad.size:
        raise BadInclusion(f"inclusion[{bad[0]}] is {pi[bad[0]]}: expected above 0 and at most 1, see Draw.inclusion")
    w = 1.0 / pi
    mass = float(w.sum())
    mean = float(w @ v) / mass
    size = effective_size(w)
    variance = float(((1.0 - pi) * (w * (v - mean)) ** 2).sum()) / mass**2
    if examined is not None and pool_size is not None and examined < pool_size:
        variance += (1.0 - examined / pool_size) * float(w @ (v - mean) ** 2) / mass / examined
    z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    if v.min() >= 0.0 and v.max() <= 1.0:
        n = mean * (1.0 - mean) / variance if variance > 0.0 else size
        centre = (mean + z * z / (2.0 * n)) / (1.0 + z * z / n)
        half = z * math.sqrt(mean * (1.0 - mean) / n + (z / (2.0 * n)) ** 2) / (1.0 + z * z / n)
    else:
        centre, half = mean, z * math.sqrt(variance)
    return Estimate(mean, centre - half, centre + half, size)
