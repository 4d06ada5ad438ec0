"""The backend, served as in production: `iwes serve`. For trying other numbers of workers and threads,
`python -m benchmarks.load.ours` serves it with those."""

from __future__ import annotations

import argparse
import os
import sys

from backend import serve
from backend.embedded.process import Stack
from benchmarks.load import projects, server
from jobs.settings import Settings
from jobs.workplace import Workplace

SERVE = ["-c", "from backend.cli import main; main()", "serve"]


def start(stack: Stack, place: Workplace, gunicorn: tuple[int, int] | None = None) -> server.Server:
    """With its own number of workers and threads, unless others are given."""
    settings = place.settings
    changed = ["-m", "benchmarks.load.ours", *(str(number) for number in gunicorn)] if gunicorn else SERVE
    env = {**os.environ, **settings.as_env()}
    return server.start(
        stack,
        "backend",
        lambda _: [sys.executable, *changed],
        settings.home / "logs" / "serve.log",
        lambda port: {**env, "IWES_PORT": str(port), "IWES_BACKEND_URL": f"http://127.0.0.1:{port}"},
        lambda first, last: projects.stored(place.store, first, last),
    )


class Changed(serve.Server):
    """The backend's own gunicorn with other numbers of workers and threads."""

    def __init__(self, settings: Settings, workers: int, threads: int) -> None:
        self._changes = {"workers": workers, "threads": threads}
        super().__init__(settings)

    def load_config(self) -> None:
        super().load_config()
        for name, value in self._changes.items():
            self.cfg.set(name, value)


if __name__ == "__main__":
    asked = argparse.ArgumentParser(prog="python -m benchmarks.load.ours", description=__doc__)
    asked.add_argument("workers", type=int)
    asked.add_argument("threads", type=int)
    given = asked.parse_args()
    Changed(Settings.from_env(), given.workers, given.threads).run()
