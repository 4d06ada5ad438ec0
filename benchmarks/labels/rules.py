"""The ways to choose labels that are compared. Adding one is adding a row to `RULES`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

import iwes
from benchmarks.labels.model import Trained
from benchmarks.labels.pools import Pool
from iwes import baselines
from iwes.baselines import Candidates, Strategy
from iwes.chance import Scaling
from models.feed import Picked

Indices = NDArray[np.int64]
Floats = NDArray[np.float64]
SEEN_AT_MOST = 10_000
"""What a rule that compares tasks with each other is shown of a larger pool, chosen at random: with every task its
distances would not fit into memory."""


@dataclass(frozen=True)
class Standing:
    """What a rule may look at: the pool, which of it is labelled and which is left, and its trained models."""

    pool: Pool
    labelled: Indices
    left: Indices
    models: list[Trained]

    def beliefs(self, places: Indices, model: int = 0) -> Floats:
        return self.models[model].probabilities(Picked(self.pool.images, places))

    def features(self, places: Indices) -> NDArray[np.float32]:
        return self.models[0].features(Picked(self.pool.images, places))


@dataclass(frozen=True)
class Choice:
    """Places in the pool with their training weights (k,). `draw` tells their chances where they had any, `expected`
    (c,) how often the model expects each class and `sure` how sure it is of its answers, on the mean of all tasks that
    the draw looked at."""

    places: Indices
    weights: Floats
    draw: iwes.Draw | None = None
    expected: Floats | None = None
    sure: float | None = None


@dataclass(frozen=True)
class Rule:
    name: str
    title: str
    choose: Callable[[Standing, int, np.random.Generator], Choice] = field(repr=False)
    models: int = 1
    calibrated: bool = False
    labelled_pool: bool = False  # it looks at the answers before it asks for them, so it is for labelled pools alone
    ours: bool = False


def strategy(choose: Strategy, *, features: bool = False) -> Callable[[Standing, int, np.random.Generator], Choice]:
    """A baseline: the top k by some measure, every weight 1."""

    def chosen(standing: Standing, k: int, rng: np.random.Generator) -> Choice:
        left = standing.left
        if features and len(left) > SEEN_AT_MOST:
            left = rng.permutation(left)[:SEEN_AT_MOST]
        vectors = standing.features(left) if features else None
        labelled = standing.features(standing.labelled) if features else None
        candidates = Candidates(standing.beliefs(left), vectors, labelled)
        places = left[choose(candidates, k, rng=rng)]
        return Choice(places, np.ones(len(places)))

    return chosen


def drawn(
    score: Callable[[Standing, Indices, Floats], Floats],
    *,
    floor: float = 0.0,
    cap: float = 2.0,
    sharpness: float = 1.0,
    scaling: Scaling = "stream",
) -> Callable[[Standing, int, np.random.Generator], Choice]:
    """A coin for each task; without options the paper's. The score is made of the first model's beliefs."""

    def chosen(standing: Standing, k: int, rng: np.random.Generator) -> Choice:
        looked_at: list[Floats] = []

        def scores(places: Indices) -> Floats:
            beliefs = standing.beliefs(standing.left[places])
            looked_at.append(beliefs)
            return score(standing, standing.left[places], beliefs)

        found = iwes.draw(
            scores,
            k,
            rng=rng,
            pool_size=len(standing.left),
            floor=floor,
            cap=cap,
            sharpness=sharpness,
            scaling=scaling,
            batch=1024,
        )
        beliefs = np.concatenate(looked_at)
        return Choice(
            standing.left[found.index], found.weight, found, beliefs.mean(axis=0), float(beliefs.max(axis=1).mean())
        )

    return chosen


def entropy(_: Standing, __: Indices, beliefs: Floats) -> Floats:
    return iwes.entropy(beliefs)


def loss(standing: Standing, places: Indices, beliefs: Floats) -> Floats:
    return iwes.loss(beliefs, _answers(standing, places))


def disagreement(standing: Standing, places: Indices, beliefs: Floats) -> Floats:
    return iwes.disagreement(beliefs, standing.beliefs(places, 1), _answers(standing, places))


def margin(_: Standing, __: Indices, beliefs: Floats) -> Floats:
    return iwes.margin(beliefs)


def certain(_: Standing, places: Indices, __: Floats) -> Floats:
    """A coin that always accepts: the first k of a random order."""
    return np.ones(len(places))


def _answers(standing: Standing, places: Indices) -> Indices:
    """Of an image that shows nothing, a labelled pool says something nevertheless."""
    said = standing.pool.answers[places]
    return np.where(said >= 0, said, standing.pool.truth[places])


RANDOM, MARGIN, BADGE = "random", "margin", "badge"
DEFAULT, FEWEST, FEWEST_BY_ENTROPY = "ent-floor", "margin-coins", "ent-low-unweighted"
"""The product's settings if nobody changes them, and those that docs/benchmarks.md names for the fewest labels: of all,
and of those that draw by entropy."""
RULES = {
    rule.name: rule
    for rule in (
        Rule(RANDOM, "random", drawn(certain, cap=1.0)),
        Rule(MARGIN, "margin", strategy(baselines.margin)),
        Rule("entropy", "entropy", strategy(baselines.entropy_topk)),
        Rule("least-confident", "least confident", strategy(baselines.least_confident)),
        Rule("coreset", "Coreset", strategy(baselines.kcenter, features=True)),
        Rule(BADGE, "BADGE", strategy(baselines.badge, features=True)),
        Rule("cluster-margin", "Cluster-Margin", strategy(baselines.cluster_margin, features=True)),
        Rule("ent-paper", "IWeS-ent (paper)", drawn(entropy), ours=True),
        Rule("dis-paper", "IWeS-dis (paper)", drawn(disagreement), models=2, labelled_pool=True, ours=True),
        Rule("loss-paper", "IWeS-loss (paper)", drawn(loss), labelled_pool=True, ours=True),
        Rule(DEFAULT, "IWeS-ent, floor 0.05", drawn(entropy, floor=0.05), ours=True),
        Rule("ent-mid", "IWeS-ent, floor 0.02, sharpness 2", drawn(entropy, floor=0.02, sharpness=2.0), ours=True),
        Rule("ent-low", "IWeS-ent, floor 0.01, sharpness 2", drawn(entropy, floor=0.01, sharpness=2.0), ours=True),
        Rule(
            FEWEST_BY_ENTROPY,
            "IWeS-ent, floor 0.01, sharpness 2, weights 1",
            drawn(entropy, floor=0.01, sharpness=2.0, cap=1.0),
            ours=True,
        ),
        Rule(
            "ent-sharp",
            "IWeS-ent, floor 0.001, sharpness 3, weights 1",
            drawn(entropy, floor=0.001, sharpness=3.0, cap=1.0),
            ours=True,
        ),
        Rule(
            "ent-pool",
            "IWeS-ent, floor 0.05, scaled to the pool",
            drawn(entropy, floor=0.05, scaling="pool"),
            ours=True,
        ),
        Rule(
            "ent-pool-sharp",
            "IWeS-ent, floor 0.001, sharpness 3, scaled to the pool",
            drawn(entropy, floor=0.001, sharpness=3.0, scaling="pool"),
            ours=True,
        ),
        Rule(
            FEWEST,
            "IWeS-margin, floor 0.01, sharpness 3, weights 1",
            drawn(margin, floor=0.01, sharpness=3.0, cap=1.0),
            ours=True,
        ),
        Rule("margin-floor", "IWeS-margin, floor 0.05", drawn(margin, floor=0.05), ours=True),
        Rule("margin-low", "IWeS-margin, floor 0.02, weights 1", drawn(margin, floor=0.02, cap=1.0), ours=True),
        Rule("ent-unweighted", "IWeS-ent, floor 0.05, weights 1", drawn(entropy, floor=0.05, cap=1.0), ours=True),
        Rule("ent-uncapped", "IWeS-ent, floor 0.05, no cap", drawn(entropy, floor=0.05, cap=math.inf), ours=True),
        Rule(
            "ent-diverse",
            "IWeS-ent, then one of each cluster",
            strategy(baselines.iwes_diverse, features=True),
            ours=True,
        ),
        Rule(
            "ent-calibrated", "IWeS-ent, floor 0.05, calibrated", drawn(entropy, floor=0.05), calibrated=True, ours=True
        ),
    )
}
