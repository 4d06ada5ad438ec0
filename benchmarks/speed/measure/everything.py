"""All that is measured, in this order."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from benchmarks.speed.facts import Fact
from benchmarks.speed.measure.asked import Peers
from benchmarks.speed.measure.distribution import distribution
from benchmarks.speed.measure.large_pool import large_pool
from benchmarks.speed.measure.small_pool import small_pool
from benchmarks.speed.settings import Settings


def everything(settings: Settings, peers: Peers, done: Collection[str]) -> Iterator[Fact]:
    """But for what is done."""
    yield from large_pool(settings, peers, done)
    yield from small_pool(settings, peers, done)
    yield from distribution(settings, peers, done)
