"""Ways to choose a batch that IWeS is compared with, all behind one interface: candidates, k, rng → indices (k,)."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from iwes.baselines.candidates import Candidates
from iwes.baselines.clustered import cluster_margin, iwes_diverse
from iwes.baselines.coreset import kcenter
from iwes.baselines.gradient import badge
from iwes.baselines.uncertain import entropy_topk, least_confident, margin
from iwes.baselines.uniform import random


class Strategy(Protocol):
    """Chooses k different candidates, or all of them where there are fewer; shape (k,)."""

    def __call__(self, candidates: Candidates, k: int, *, rng: np.random.Generator) -> NDArray[np.int64]: ...


STRATEGIES: dict[str, Strategy] = {
    "random": random,
    "margin": margin,
    "least_confident": least_confident,
    "entropy_topk": entropy_topk,
    "kcenter": kcenter,
    "badge": badge,
    "cluster_margin": cluster_margin,
    "iwes_diverse": iwes_diverse,
}

__all__ = [
    "STRATEGIES",
    "Candidates",
    "Strategy",
    "badge",
    "cluster_margin",
    "entropy_topk",
    "iwes_diverse",
    "kcenter",
    "least_confident",
    "margin",
    "random",
]
