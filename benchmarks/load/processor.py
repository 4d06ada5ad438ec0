"""Processor time: what each server, the training and everything else on this machine took of it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
CORES = os.cpu_count() or 1


def of_session(session: int) -> float:
    """Seconds that the processes of a session have taken so far, children that have ended included."""
    ticks = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.getsid(int(folder.name)) == session:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                ticks += sum(int(field) for field in fields[11:15])
    return ticks / TICKS


def of_machine() -> float:
    """Seconds that all processors together have been busy; one that only waits for a disk is not."""
    user, nice, system, _idle, _waiting, *others = (
        int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    )
    return (user + nice + system + sum(others)) / TICKS
