"""How much memory this process has, as the kernel counts it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

STATUS = Path("/proc/self/status")


def megabytes(field: str) -> float:
    """VmRSS: in memory now; VmHWM: at most so far; RssAnon, RssFile: its own, and mapped files."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(f"{field}:"))
    return int(line.split()[1]) / 1024


@dataclass
class Usage:
    """In MB: before, and at most while watched."""

    before: float
    most: float = 0.0
    most_own: float = 0.0
    most_mapped: float = 0.0


@contextmanager
def watched(every: float = 0.02) -> Iterator[Usage]:
    with suppress(OSError):  # not allowed everywhere; the highest so far then includes what came before
        Path("/proc/self/clear_refs").write_text("5")
    usage, done = Usage(megabytes("VmRSS")), threading.Event()

    def look() -> None:
        while not done.wait(every):
            usage.most_own = max(usage.most_own, megabytes("RssAnon"))
            usage.most_mapped = max(usage.most_mapped, megabytes("RssFile"))

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield usage
    finally:
        done.set()
        watcher.join()
        usage.most = megabytes("VmHWM")
