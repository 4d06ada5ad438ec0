"""The steps of a start, each shown while it runs and told in one line with its seconds when it is done."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.status import Status


class Step:
    """A running step; whoever runs it says what came of it."""

    def __init__(self, name: str, status: Status) -> None:
        self.result = "done"
        self._name = name
        self._status = status

    def say(self, line: str) -> None:
        self._status.update(f"{self._name}: {line}")


class Steps:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._running: Step | None = None

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        began = time.monotonic()
        with self._console.status(name) as status:
            step = self._running = Step(name, status)
            yield step
        self._console.print(f"[green]✓[/] {name}: {step.result} [dim]({time.monotonic() - began:.1f} s)[/]")

    def aside(self, line: str) -> None:
        """Something done beside the running step, shown in its place."""
        if self._running is not None:
            self._running.say(line)
