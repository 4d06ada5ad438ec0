"""Rounds of a baseline that takes the top k of the whole pool, every weight 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.subsets.curve import Curve, Network
from benchmarks.subsets.selection import Selection
from benchmarks.subsets.settings import Settings
from iwes import draw_seed
from iwes.baselines import Candidates, Strategy
from models.feed import Picked


def select(strategy: Strategy, curve: Curve, settings: Settings, rng: np.random.Generator) -> Selection:
    """The same order of random numbers as in `iwes.select_subset`: the same seed set and the same first model."""
    data = curve.data
    everyone = np.arange(len(data.labels))
    index = draw_seed(len(everyone), settings.k0, rng=rng).index
    examined = 0
    for _ in range(settings.rounds):
        model = _trained(curve, index, rng)
        left = np.setdiff1d(everyone, index, assume_unique=True)
        candidates = Candidates(model.predict_proba(Picked(data.images, left)))
        index = np.append(index, left[strategy(candidates, settings.k, rng=rng)])
        examined += len(left)
    _trained(curve, index, rng)
    number = np.repeat(np.arange(settings.rounds + 1), [settings.k0] + [settings.k] * settings.rounds)
    return Selection(index, np.ones(len(index)), number, np.ones(len(index)), examined)


def _trained(curve: Curve, index: NDArray[np.int64], rng: np.random.Generator) -> Network:
    model = curve.model(int(rng.integers(2**31)))
    model.fit(curve.data.images[index], curve.data.labels[index], np.ones(len(index)))
    return model
