"""Real worker processes for tests, and what they noted about the jobs they did."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from redis import Redis
from rq import Queue

from jobs import queues
from jobs.settings import Settings
from jobs.worker import LoopWorker
from tests.live import ROOT

PATIENCE = 90.0
CODE = "import sys; from jobs import settings, worker; worker.run(settings.Settings.from_env(), sys.argv[1:])"


@dataclass(frozen=True)
class Run:
    """One try at a job."""

    horse: int
    worker: int
    began: float


@dataclass
class Workers:
    """Those of one store and one Redis; all are gone when the block ends."""

    settings: Settings
    diary: Path
    log: Path
    environment: dict[str, str] = field(default_factory=dict)
    _hired: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._hired:
            with suppress(ProcessLookupError):
                process.kill()
            process.wait()
        if error is not None and self.log.exists():
            print(self.log.read_text()[-5000:])

    def hire(
        self, *names: str, within: Callable[[list[str]], list[str]] = lambda command: command
    ) -> subprocess.Popen[bytes]:
        """Starts a worker for these queues; `within` puts its command into another."""
        given = replace(self.settings, redis_is_embedded=False).as_env()
        env = {**os.environ, **given, "IWES_TEST_DIARY": str(self.diary), **self.environment}
        command = within([sys.executable, "-c", CODE, *(names or (queues.STUDIO,))])
        with self.log.open("ab") as log:
            self._hired.append(subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=log))
        return self._hired[-1]

    def runs(self) -> list[Run]:
        lines = self.diary.read_text().splitlines() if self.diary.exists() else []
        return [Run(int(horse), int(worker), float(began)) for horse, worker, began in map(str.split, lines)]

    def await_run(self, number: int) -> Run:
        wait_for(lambda: len(self.runs()) >= number, f"try {number}")
        return self.runs()[number - 1]


def begin(redis: Redis, name: str) -> tuple[Queue, str]:
    """Takes the next job and begins it, as a worker does, and no more: so a worker that is killed leaves it. Returns
    its queue and the name of the run."""
    worker = LoopWorker([name], connection=redis, serializer=queues.SERIALIZER)
    taken = LoopWorker.queue_class.dequeue_any(worker.queues, None, redis, serializer=queues.SERIALIZER)
    assert taken is not None
    run = worker.prepare_execution(taken[0])
    worker.prepare_job_execution(taken[0])
    return queues.queue(redis, name), run.composite_key


def wait_for(condition: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    """Whether it runs: one that ended and that nobody has asked about yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kill(pids: Sequence[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
