"""Training weights: what an accepted task counts for, and how much a weighted set is worth."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from iwes.errors import BadArgument

Floats = NDArray[np.float64]


def training_weight(probability: ArrayLike, *, cap: float = 2.0) -> Floats:
    """min(1/p, `cap`) for each acceptance probability p in (0, 1]; same shape, in [1, cap]."""
    p = np.asarray(probability, dtype=np.float64)
    if not cap >= 1.0:
        raise BadArgument(f"cap is {cap}: expected 1 or more (infinity for no cap)")
    bad = np.flatnonzero(~((p > 0.0) & (p <= 1.0)))
    if bad.size:
        raise BadArgument(f"probability[{bad[0]}] is {p.flat[bad[0]]}: expected more than 0 and at most 1")
    return np.minimum(1.0 / p, cap)


def share_capped(probability: ArrayLike, *, cap: float = 2.0) -> float:
    """The share of tasks whose 1/p exceeds `cap`, in [0, 1]; at 1 the weights say nothing, all being equal.

    IWeS-dis and IWeS-loss never exceed 1/e, so any cap up to e = 2.718 gives 1. An empty set gives 0.
    """
    p = np.asarray(probability, dtype=np.float64)
    return float(np.mean(training_weight(p, cap=cap) * p < 1.0 - 1e-12)) if p.size else 0.0


def normalise(weight: ArrayLike, *, to: Literal["mean", "sum"] = "mean", total: float | None = None) -> Floats:
    """Rescale weights to mean 1 (`to="mean"`) or to the sum `total`, the pool's size as a rule (`to="sum"`).

    Ratios between weights stay as they are. An empty set stays empty.
    """
    w = check_weight(weight)
    if to == "mean":
        target = float(len(w))
    elif to == "sum" and total is not None and total > 0.0:
        target = float(total)
    else:
        raise BadArgument(f'to is "{to}" and total {total}: pass to="mean", or to="sum" with a total above 0')
    mass = float(w.sum())
    if len(w) and mass <= 0.0:
        raise BadArgument("weight sums to 0: at least one weight must be positive")
    return w * (target / mass) if len(w) else w


def effective_size(weight: ArrayLike) -> float:
    """Kish's effective sample size (Σw)²/Σw², from 1 (one task dominates) to n (all count alike).

    The number of equally weighted labels that would say as much. An empty or all-zero set gives 0.
    """
    w = check_weight(weight)
    square = float(w @ w)
    return float(w.sum()) ** 2 / square if square > 0.0 else 0.0


def check_weight(weight: ArrayLike) -> Floats:
    """The weights as floats of shape (n,), each finite and 0 or more."""
    w = np.asarray(weight, dtype=np.float64)
    if w.ndim != 1:
        raise BadArgument(f"weight has shape {w.shape}: expected one weight per task, shape (n,)")
    bad = np.flatnonzero(~((w >= 0.0) & np.isfinite(w)))
    if bad.size:
        raise BadArgument(f"weight[{bad[0]}] is {w[bad[0]]}: expected a finite number, 0 or more")
    return w
