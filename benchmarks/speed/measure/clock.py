"""Processor times: unlike the clock they do not mind what else the machine does."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def seconds(call: Callable[[], object], repeats: int = 5) -> float:
    """The median of a few runs."""
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        taken.append(time.process_time() - start)
    return statistics.median(taken)


def per_pick(ask: Callable[[int], object], picks: int, k: int) -> float:
    """The time of k picks, from that of `picks`; what a peer does once, before picking, is counted once."""
    if picks == k:
        return seconds(lambda: ask(k), 1)
    first = seconds(lambda: ask(2), 1)
    return first + (seconds(lambda: ask(picks), 1) - first) / (picks - 2) * (k - 2)
