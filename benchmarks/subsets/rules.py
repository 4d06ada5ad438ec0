"""The rules that are compared. Adding one is adding a row here."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.subsets import topk
from benchmarks.subsets.curve import Curve
from benchmarks.subsets.selection import Selection
from benchmarks.subsets.settings import Settings
from iwes import Probability, baselines, select_subset
from iwes.baselines import Strategy

Select = Callable[[Curve, Settings, np.random.Generator], Selection]


@dataclass(frozen=True)
class Rule:
    name: str
    title: str
    select: Select
    weighted: bool = True  # whether its weights can differ from 1
    whole: bool = False  # takes the whole pool


def drawn(probability: str | Probability, *, cap: float, floor: float = 0.0) -> Select:
    """Algorithm 1."""

    def select(curve: Curve, settings: Settings, rng: np.random.Generator) -> Selection:
        subset = select_subset(
            curve.data.images,
            curve.model,
            probability,
            labels=curve.data.labels,
            k0=settings.k0,
            k=settings.k,
            rounds=settings.rounds,
            rng=rng,
            classes=curve.data.classes,
            cap=cap,
            floor=floor,
            batch=1024,
        )
        return Selection.of(subset, cap)

    return select


def chosen(strategy: Strategy) -> Select:
    return lambda curve, settings, rng: topk.select(strategy, curve, settings, rng)


def everything(curve: Curve, settings: Settings, rng: np.random.Generator) -> Selection:
    count = len(curve.data.labels)
    ones = np.ones(count)
    curve.model(int(rng.integers(2**31))).fit(curve.data.images, curve.data.labels, ones)
    return Selection(np.arange(count), ones, np.zeros(count, np.int64), ones, count)


# A coin that always accepts takes the first k of a uniformly random order, each with weight 1.
CERTAIN = Probability(lambda beliefs, _: np.ones(len(beliefs[0])))

RANDOM, FULL = "random", "full"
RULES = {
    rule.name: rule
    for rule in (
        Rule(RANDOM, "random", drawn(CERTAIN, cap=1.0), weighted=False),
        Rule("margin", "margin, top k", chosen(baselines.margin), weighted=False),
        Rule("dis", "IWeS-dis, u = 2 (paper)", drawn("disagreement", cap=2.0)),
        Rule("dis-floor", "IWeS-dis, floor 0.05, no cap", drawn("disagreement", cap=math.inf, floor=0.05)),
        Rule("loss", "IWeS-loss, u = 2 (paper)", drawn("loss", cap=2.0)),
        Rule("ent", "IWeS-ent, u = 2 (paper)", drawn("entropy", cap=2.0)),
        Rule(FULL, "the full set", everything, weighted=False, whole=True),
    )
}
