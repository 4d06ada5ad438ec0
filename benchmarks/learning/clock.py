"""Times several ways of doing the same, in turns, so that what else the machine does falls on all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def in_turns(ways: Mapping[str, Callable[[], object]], *, repeats: int) -> dict[str, float]:
    """The median seconds of each way over rounds in which each has its turn, after one round that does not count."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(repeats + 1):
        for name, call in ways.items():
            took = seconds(call)
            if turn:
                taken[name].append(took)
    return {name: median(times) for name, times in taken.items()}
