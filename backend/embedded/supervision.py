"""Keeps children running: one that ended by itself is started again, after a wait that grows while it keeps ending."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from backend.embedded.ports import PortBusy
from backend.embedded.process import Process, ProcessFailed, Stack
from backend.embedded.redis import RedisUnavailable

FIRST_WAIT = 0.5
LONGEST_WAIT = 30.0
JITTER = 0.25
"""Each wait is up to so much shorter or longer, so that children that fell together do not all come back at once."""
STEADY_SECONDS = 60.0
"""A child that has run for so long counts as sound: the next wait is the first one again."""
LOOK_SECONDS = 0.25


@dataclass
class _Fallen:
    due: float | None = None
    """When it is to be started again; None while it runs."""
    falls: int = 0
    """In a row, without a steady time between two of them."""


class Supervisor:
    """Looks after the children of a stack, for as long as somebody calls `look`. It never gives up: a child that
    cannot stay up is tried every half a minute or so, and each time is told on the console and in the child's log.

    What an ended child leaves behind (an RQ work-horse, gunicorn's workers with the port) is killed before it is
    started again, so that never two of a kind run.
    """

    def __init__(self, stack: Stack, say: Callable[[str], None]) -> None:
        self._stack = stack
        self._say = say
        self._fallen: dict[int, _Fallen] = {}

    def look(self) -> None:
        """Call it every `LOOK_SECONDS` or so, from the main thread: only that one may start children."""
        for process in self._stack.processes:
            if not process.running:
                self._attend(process, self._fallen.setdefault(id(process), _Fallen()))

    def _attend(self, process: Process, fallen: _Fallen) -> None:
        if fallen.due is None:
            if process.age >= STEADY_SECONDS:
                fallen.falls = 0
            self._plan(process, fallen, f"{process.name} {_how_it_ended(process)}")
        elif time.monotonic() >= fallen.due:
            try:
                process.stop()
                process.start()
            except (ProcessFailed, PortBusy, RedisUnavailable, OSError) as error:
                self._plan(process, fallen, f"{process.name} could not be started again: {error}")
            else:
                fallen.due = None

    def _plan(self, process: Process, fallen: _Fallen, happened: str) -> None:
        wait = wait_after(fallen.falls)
        fallen.falls += 1
        fallen.due = time.monotonic() + wait
        line = f"{happened}; it is started again in {wait:.1f} s"
        process.note(line)
        self._say(f"{line} (log: {process.log})")


def wait_after(falls: int) -> float:
    """Seconds before the next start of a child that has fallen so often before."""
    wait = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(falls, 16))
    return min(LONGEST_WAIT, wait * random.uniform(1 - JITTER, 1 + JITTER))  # noqa: S311 - nobody has to guess it


def _how_it_ended(process: Process) -> str:
    code = process.exit_code
    if code is None:
        return "is not running"
    if code < 0:
        return f"was ended by signal {-code} ({signal.strsignal(-code)})"
    return f"ended with code {code}"
