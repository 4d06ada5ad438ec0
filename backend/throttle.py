"""Slows down whoever guesses the admin token."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

FREE = 5
"""Wrong guesses in a row that cost nothing: people mistype."""
FIRST_SECONDS = 1.0
LONGEST_SECONDS = 60.0
MOST_ADDRESSES = 10_000
"""Remembered; beyond that, those that have been quiet for longest are forgotten."""


@dataclass(frozen=True)
class _Guesses:
    wrong: int
    free_at: float


class Throttle:
    """Each wrong guess from an address doubles the time until its next is looked at. Every web process counts by
    itself. Safe to share between threads."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changing = threading.Lock()
        self._guesses: OrderedDict[str, _Guesses] = OrderedDict()

    def seconds_left(self, address: str) -> int:
        """How long this address has to wait before its next guess; 0 if it need not."""
        found = self._guesses.get(address)
        return max(0, math.ceil(found.free_at - self._clock())) if found else 0

    def wrong(self, address: str) -> None:
        with self._changing:
            before = self._guesses.pop(address, None)
            wrong = (before.wrong if before else 0) + 1
            wait = min(FIRST_SECONDS * 2.0 ** min(wrong - FREE, 16), LONGEST_SECONDS) if wrong >= FREE else 0.0
            self._guesses[address] = _Guesses(wrong, self._clock() + wait)
            if len(self._guesses) > MOST_ADDRESSES:
                self._guesses.popitem(last=False)

    def right(self, address: str) -> None:
        with self._changing:
            self._guesses.pop(address, None)
