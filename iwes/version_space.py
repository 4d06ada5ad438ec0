"""IWeS-V, Enhanced-IWeS-V and IWAL: sampling by what the hypotheses still in the running disagree about."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from iwes.errors import BadArgument

Floats = NDArray[np.float64]
Rule = Literal["iwes", "enhanced", "iwal"]


class VersionSpace:
    """The hypotheses of a finite class whose weighted empirical loss is within Δ_t of the best.

    One example at a time: `probability` says how likely to sample it, `update` what came of it. Losses are bounded
    in [0, 1]; with probability 1 − δ the best hypothesis stays alive throughout.
    """

    def __init__(self, hypotheses: int, horizon: int, *, delta: float = 0.05, rule: Rule = "iwes") -> None:
        if hypotheses < 1 or horizon < 2:
            raise BadArgument(f"hypotheses is {hypotheses}, horizon {horizon}: expected at least 1 and 2")
        if not 0.0 < delta < 1.0:
            raise BadArgument(f"delta is {delta}: expected a probability between 0 and 1, such as 0.05")
        if rule not in ("iwes", "enhanced", "iwal"):
            raise BadArgument(f'rule is "{rule}": expected "iwes", "enhanced" or "iwal"')
        self.hypotheses = hypotheses
        self.horizon = horizon
        self.delta = delta
        self.rule = rule
        self.seen = 0
        self.alive = np.ones(hypotheses, dtype=np.bool_)
        self._loss = np.zeros(hypotheses)  # t times the importance-weighted empirical loss
        self._mass = 0.0  # Σ p so far

    def probability(self, losses: ArrayLike) -> float:
        """The largest difference between the losses of two living hypotheses, in [0, 1]; high = sample it.

        `losses` has shape (hypotheses,): l(h(x), y) for the known label y. For IWAL, which does not know it,
        (labels, hypotheses); the largest difference over the labels counts.
        """
        table = np.atleast_2d(np.asarray(losses, dtype=np.float64))
        if table.shape[1] != self.hypotheses or (self.rule != "iwal" and len(table) != 1):
            raise BadArgument(f"losses has shape {np.shape(losses)}: expected {self.hypotheses}, one per hypothesis")
        if not (table.min() >= 0.0 and table.max() <= 1.0):
            raise BadArgument(f"losses go from {table.min()} to {table.max()}: scale the loss to lie in [0, 1]")
        living = table[:, self.alive]
        return float((living.max(axis=1) - living.min(axis=1)).max())

    def update(self, losses: ArrayLike, probability: float, accepted: bool) -> None:
        """Record the example of `probability`; `losses` (hypotheses,) are those of its label, used if accepted."""
        self.seen += 1
        self._mass += probability
        if not accepted:
            return  # t · Δ_t only grows, so that nothing can fall out
        self._loss += np.asarray(losses, dtype=np.float64) / probability
        best = self._loss[self.alive].min()
        self.alive &= self._loss <= best + self.seen * self.slack()

    def slack(self, seen: int | None = None) -> float:
        """Δ_t after t = `seen` examples (now, if left out): how much worse than the best a hypothesis may look."""
        t = self.seen if seen is None else seen
        if t < 1:
            return math.inf
        big = float(self.horizon)
        if self.rule == "enhanced":
            spread = math.sqrt(self._mass) + 6.0 * math.sqrt(math.log((3 + t) * t**2 / self.delta))
            count = math.log(8.0 * big**2 * self.hypotheses**2 * math.log(big) / self.delta)
            return 2.0 / t * spread * math.sqrt(count)
        return math.sqrt(8.0 * math.log(2.0 * big * (big + 1.0) * self.hypotheses**2 / self.delta) / t)

    def best(self) -> int:
        """The living hypothesis of smallest weighted empirical loss."""
        return int(np.argmin(np.where(self.alive, self._loss, np.inf)))


@dataclass(frozen=True, eq=False)
class VersionSpaceSample:
    """What a pass over a stream of T examples came to; arrays of shape (T,)."""

    accepted: NDArray[np.bool_]
    probability: Floats
    alive: NDArray[np.int64]  # hypotheses in the running after each example
    hypothesis: int  # the one returned
    space: VersionSpace

    @property
    def weight(self) -> Floats:
        """1/p where accepted, 0 elsewhere."""
        return np.where(self.accepted, 1.0 / np.maximum(self.probability, np.finfo(np.float64).tiny), 0.0)


def sample_version_space(
    losses: ArrayLike,
    *,
    rng: np.random.Generator,
    labels: ArrayLike | None = None,
    delta: float = 0.05,
    rule: Rule = "iwes",
) -> VersionSpaceSample:
    """Pass once over a stream, sampling each example with the probability of the rule, and return a hypothesis.

    `losses` has shape (T, hypotheses) for the known labels or, needed by IWAL, (T, classes, hypotheses) for every
    label, with the true `labels` (T,). Each in [0, 1]. One coin per example whatever the rule, so that the rules
    can be compared on the same coins.
    """
    table = np.asarray(losses, dtype=np.float64)
    if table.ndim == 3:
        if labels is None or np.shape(labels) != (len(table),):
            raise BadArgument(f"losses has shape {table.shape}: give labels, shape ({len(table)},), too")
        known = table[np.arange(len(table)), np.asarray(labels)]
    elif table.ndim == 2 and rule != "iwal":
        known = table
    else:
        raise BadArgument(f"losses has shape {table.shape}: expected (T, hypotheses), IWAL (T, classes, hypotheses)")
    size = len(table)
    space = VersionSpace(table.shape[-1], size, delta=delta, rule=rule)
    coins = rng.random(size)
    accepted = np.zeros(size, dtype=np.bool_)
    probability = np.zeros(size)
    alive = np.zeros(size, dtype=np.int64)
    for t in range(size):  # each probability depends on everything before it
        p = space.probability(table[t] if rule == "iwal" else known[t])
        accepted[t] = coins[t] < p
        space.update(known[t], p, bool(accepted[t]))
        probability[t] = p
        alive[t] = np.count_nonzero(space.alive)
    return VersionSpaceSample(accepted, probability, alive, space.best(), space)
