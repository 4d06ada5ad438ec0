"""The backend on a port of its own, as `iwes serve` starts it, without a Redis."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from backend.embedded.ports import any_free
from backend.embedded.process import Process, Stack
from jobs.settings import Settings

START_SECONDS = 120
COMMAND = [sys.executable, "-c", "from backend.cli import main; main()", "serve"]


@contextmanager
def serve(settings: Settings, log: Path) -> Iterator[int]:
    port = any_free()
    env = {**os.environ, **settings.as_env(), "REDIS_URL": "redis://127.0.0.1:1", "IWES_PORT": str(port)}
    with Stack() as stack:
        process = stack.start(Process("serve", COMMAND, log, env))
        process.wait_until(lambda: answers(port), START_SECONDS, "it answered")
        yield port


def answers(port: int) -> bool:
    try:
        return requests.get(f"http://127.0.0.1:{port}/login", timeout=1).ok
    except requests.RequestException:
        return False
