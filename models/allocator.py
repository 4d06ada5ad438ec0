"""Lets the C library keep the memory that a batch gives back, for the next batch.

By default glibc returns large blocks to the system at once and faults them in anew, page by page: for networks with
many large activations on a CPU that took more time than the arithmetic (EfficientNet-Lite0: 6.6 s against 2.0 s).
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as malloc.h has them
_KEPT = 2**31 - 1
_LARGE = (2**30, 2**25)  # the second is the most that older versions take


@cache
def keep_freed_memory() -> bool:
    """Once per process; False where the C library is another, which then goes on as it does."""
    if sys.platform != "linux":
        return False
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return any(set_option(_MMAP_THRESHOLD, size) for size in _LARGE) and bool(set_option(_TRIM_THRESHOLD, _KEPT))
