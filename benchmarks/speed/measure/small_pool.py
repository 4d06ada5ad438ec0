"""60,000 rows with features: BADGE, k-center, and the slower entropy queries."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from benchmarks.speed.facts import Times
from benchmarks.speed.measure import arrays, clock
from benchmarks.speed.measure.asked import Array, Badge, Entropy, Peers
from benchmarks.speed.measure.large_pool import EAGER, LAZY, rng
from benchmarks.speed.measure.side_by_side import Ours, Peer, times
from benchmarks.speed.settings import Settings
from iwes import baselines, draw, entropy
from iwes.baselines import Candidates


def small_pool(settings: Settings, peers: Peers, done: Collection[str]) -> Iterator[Times]:
    p, features = arrays.pool(settings.small, settings)
    yield from _badge(p, features, settings, peers, done)
    yield from _kcenter(features, settings, peers, done)
    yield from _entropy(p, settings, peers, done)


def _badge(p: Array, features: Array, settings: Settings, peers: Peers, done: Collection[str]) -> Iterator[Times]:
    pool, k, picks = Candidates(p, features), settings.k, settings.picks
    ours = Ours("BADGE", lambda: baselines.badge(pool, k, rng=rng()), 3)

    def peer(name: str, ask: Badge, wanted: float) -> Peer:
        return Peer(
            name, lambda: clock.per_pick(lambda count: ask(p, features, count), picks, k), picks, {"BADGE": wanted}
        )

    asked = [peer("scikit-activeml", peers.activeml_badge, 80), peer("reference algorithm", peers.reference_badge, 10)]
    yield from times(len(p), [ours], asked, done)


def _kcenter(features: Array, settings: Settings, peers: Peers, done: Collection[str]) -> Iterator[Times]:
    """Asked for the first picks of both: k-center is greedy, so they do not depend on how many are wanted."""
    labelled, rest = features[: settings.labelled], features[settings.labelled :]
    pool, k, picks = Candidates(features=rest, labelled=labelled), settings.k, settings.picks
    ours = Ours("k-center", lambda: baselines.kcenter(pool, k, rng=rng()), 3)

    def ask(count: int) -> Array:
        return peers.activeml_kcenter(rest, labelled, count)

    def same() -> bool:
        return bool(ask(picks).tolist() == baselines.kcenter(pool, k, rng=rng())[:picks].tolist())

    taken = lambda: clock.per_pick(ask, picks, k)  # noqa: E731
    peer = Peer("scikit-activeml", taken, picks, {"k-center": 12}, picks, {"k-center": same})
    yield from times(len(features), [ours], [peer], done)


def _entropy(p: Array, settings: Settings, peers: Peers, done: Collection[str]) -> Iterator[Times]:
    k = settings.k
    lazy = Ours(LAZY, lambda: draw(lambda index: entropy(p[index]), k, rng=rng(), pool_size=len(p)))
    eager = Ours(EAGER, lambda: draw(entropy(p), k, rng=rng()))

    def peer(name: str, ask: Entropy) -> Peer:
        return Peer(name, lambda: clock.seconds(lambda: ask(p, k), 1), k)

    asked = [peer("small-text", peers.small_text_entropy), peer("cleanlab ActiveLab", peers.active_lab)]
    yield from times(len(p), [lazy, eager], asked, done)
