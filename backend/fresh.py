"""What takes a while to find out, found out once for all who ask, and anew when it is old."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from math import inf
from typing import Generic, TypeVar

Found = TypeVar("Found")

MOST_OF_THE_TIME = 0.05
"""However many ask, finding out takes no more of the time than this: in a large store it happens less often."""


class Fresh(Generic[Found]):
    """Safe to share between threads: while one finds out, the others wait for what it finds."""

    def __init__(self, find: Callable[[], Found], *, seconds: float, share: float = MOST_OF_THE_TIME) -> None:
        self._find = find
        self._seconds = seconds
        self._share = share
        self._finding = threading.Lock()
        self._found: list[Found] = []
        self._stale_at = -inf
        self.asked_at = -inf

    def get(self) -> Found:
        """Raises what finding out raises; then the next one tries again."""
        with self._finding:
            began = self.asked_at = time.monotonic()
            if not self._found or began >= self._stale_at:
                self._found = [self._find()]
                self._stale_at = began + max(self._seconds, (time.monotonic() - began) / self._share)
            return self._found[0]
