"""A million rows of probabilities: entropy queries, and the memory of a draw."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from benchmarks.speed.facts import Memory, Times
from benchmarks.speed.measure import arrays, clock, memory
from benchmarks.speed.measure.asked import Entropy, Peers
from benchmarks.speed.measure.side_by_side import Ours, Peer, times
from benchmarks.speed.settings import Settings
from iwes import baselines, draw, entropy
from iwes.baselines import Candidates

LAZY, EAGER, TOP = "lazy IWeS-ent draw", "eager IWeS-ent draw", "entropy top-k"


def large_pool(settings: Settings, peers: Peers, done: Collection[str]) -> Iterator[Times | Memory]:
    p, k = arrays.large(settings), settings.k
    lazy = Ours(LAZY, lambda: draw(lambda index: entropy(p[index]), k, rng=rng(), pool_size=len(p)))
    eager = Ours(EAGER, lambda: draw(entropy(p), k, rng=rng()))
    top = Ours(TOP, lambda: baselines.entropy_topk(Candidates(p), k, rng=rng()))

    def peer(name: str, ask: Entropy) -> Peer:
        def same() -> bool:
            ours = baselines.entropy_topk(Candidates(p), k, rng=rng())
            return set(ask(p, k).tolist()) == set(ours.tolist())

        taken = lambda: clock.seconds(lambda: ask(p, k))  # noqa: E731
        return Peer(name, taken, k, {LAZY: 8, EAGER: 1.3}, k, {TOP: same})

    asked = [peer("modAL", peers.modal_entropy), peer("Baal", peers.baal_entropy)]
    yield from times(len(p), [lazy, eager, top], asked, done)
    for one in (lazy, eager):
        if Memory(len(p), one.task, 0).name not in done:
            yield Memory(len(p), one.task, memory.peak(one.call) / (8 * len(p)))


def rng() -> np.random.Generator:
    return np.random.default_rng(1)
