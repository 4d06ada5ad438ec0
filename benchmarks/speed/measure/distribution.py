"""BADGE's picks after the first, on a pool of eight, counted for us and for the peers."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator

import numpy as np
from scipy.stats import chi2_contingency

from benchmarks.speed.facts import Draws
from benchmarks.speed.measure.asked import Peers
from benchmarks.speed.settings import Settings
from iwes.baselines.geometry import Factored
from iwes.baselines.gradient import spread


def distribution(settings: Settings, peers: Peers, done: Collection[str]) -> Iterator[Draws]:
    """scikit-activeml begins with the distances from the origin and keeps them, as if the origin had been chosen
    first; asked to do the same, ours draws the same.
    """
    r = np.random.default_rng(3)
    p, features = r.dirichlet(np.ones(3), 8), r.normal(size=(8, 4))
    slope = p - np.eye(3)[p.argmax(axis=1)]
    geometry = Factored(slope, features)
    for name, ask, bound in (
        ("the reference algorithm", peers.reference_badge, None),
        ("scikit-activeml, the origin taken as chosen,", peers.activeml_badge, geometry.norm),
    ):
        if Draws(name, True, 0, 0).name in done:
            continue
        print(f"counting the picks of {settings.pairs:,} runs of BADGE by {name}", file=sys.stderr)
        theirs = [ask(p, features, 3, seed=s) for s in range(settings.pairs)]
        ours = [spread(geometry, 3, rng=np.random.default_rng(s), bound=bound) for s in range(settings.pairs)]
        table = np.zeros((2, 64))
        for line, choices in enumerate((ours, theirs)):
            for _, second, third in choices:
                table[line, 8 * second + third] += 1
        seen = table[:, table.sum(axis=0) >= 10]
        chance = float(chi2_contingency(seen).pvalue)
        yield Draws(name, bool(ours[0][0] == theirs[0][0]), settings.pairs, chance)
