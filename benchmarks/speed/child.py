"""The process that measures: it runs in the peers' environment, on one thread, and tells each fact when it has it."""

from __future__ import annotations

import json
import os
import subprocess
import typing
from collections.abc import Collection, Generator, Sequence
from dataclasses import asdict

from benchmarks.speed import facts
from benchmarks.speed.facts import Fact
from benchmarks.speed.made import PROJECT
from benchmarks.speed.settings import Settings

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
PROGRAM = ("-m", "benchmarks.speed.measure")


class Stopped(RuntimeError):
    """It ended before everything was measured; what it told until then is kept."""


def measured(command: Sequence[str], settings: Settings, done: Collection[str]) -> Generator[Fact, None, None]:
    """All facts but those whose names are in `done`. Raises Stopped. Whoever stops asking stops the process."""
    env = {**os.environ, **dict.fromkeys(THREADS, "1")}
    process = subprocess.Popen(
        command, cwd=PROJECT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        with typing.cast(typing.TextIO, process.stdin) as told:
            json.dump({"settings": asdict(settings), "done": sorted(done)}, told)
        with typing.cast(typing.TextIO, process.stdout) as lines:
            for line in lines:
                yield facts.from_dict(json.loads(line))
        if code := process.wait():
            raise Stopped(f"the measuring ended with code {code}; run it again and it goes on where it was")
    finally:
        process.kill()
        process.wait()
