"""What else this machine was busy with: figures of a busy machine say less, and whoever reads them should know."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from backend.embedded.process import Stack
from benchmarks.load import processor


class Others:
    """Processor time taken, since it was made, by everything that this benchmark did not start."""

    def __init__(self, stacks: Sequence[Stack]) -> None:
        self._stacks = stacks
        self._began, self._before = time.monotonic(), self._seconds()

    @property
    def cores(self) -> float:
        """On average."""
        return max(0.0, (self._seconds() - self._before) / max(1e-3, time.monotonic() - self._began))

    def _seconds(self) -> float:
        own = os.times()
        started = [process.pid for stack in self._stacks for process in stack.processes]
        taken = sum(processor.of_session(pid) for pid in started if pid) + sum(own[:4])
        return processor.of_machine() - taken
