"""The servers under load: how each is started, and which annotations it has stored."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import requests

from backend.embedded.ports import any_free
from backend.embedded.process import Process, Stack
from benchmarks.load import processor

START_SECONDS = 120.0
REST = 0.1
"""Of one processor: a server that takes less has nothing more to prepare."""

Stored = Callable[[int, int], list[int]]


@dataclass(frozen=True)
class Server:
    name: str
    port: int
    process: Process
    stored: Stored | None = None
    """The annotations with numbers from the first to below the last, once for each time that one is there; None for a
    server that stores none."""

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def cpu_seconds(self) -> float:
        return processor.of_session(self.process.pid or 0)

    def await_rest(self) -> None:
        """Returns once it answers and has done what it does at its start."""
        self.process.wait_until(self._answers, START_SECONDS, "it answered")
        last = self.cpu_seconds
        for _ in range(int(START_SECONDS)):
            time.sleep(1)
            last, before = self.cpu_seconds, last
            if last - before < REST:
                return
        raise self.process.failure("did not come to rest")

    def _answers(self) -> bool:
        try:
            return requests.get(f"http://{self.host}/health", timeout=1).ok
        except requests.RequestException:
            return False


def start(
    stack: Stack,
    name: str,
    argv: Callable[[int], list[str]],
    log: Path,
    env: Callable[[int], Mapping[str, str]],
    stored: Stored | None = None,
) -> Server:
    """Starts a server on a free port, which its command and its environment are told; does not wait for it."""
    port = any_free()
    return Server(name, port, stack.start(Process(name, argv(port), log, env(port))), stored)
