"""`iwes up`: everything one machine needs, as children of one process."""

from __future__ import annotations

import os
import signal
import sys
import time
from types import FrameType

import click
import requests
from redis import Redis

from backend.embedded.ports import require_free
from backend.embedded.process import Process, Stack
from backend.embedded.redis import start_redis
from jobs.queues import GPU, STUDIO
from jobs.settings import Settings

START_SECONDS = 90.0
REDIS_SECONDS = 5.0


def up(settings: Settings) -> None:
    signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        with Stack() as stack:
            start_backend(stack, settings)
            click.echo(f"the backend listens on {settings.backend_url}; stop it with Ctrl-C")
            while True:
                stack.check()
                time.sleep(1)
    except KeyboardInterrupt:
        click.echo("stopped")


def start_backend(stack: Stack, settings: Settings) -> None:
    """Redis where none is given, the web server, and a worker for each queue, so that publishing never waits for a
    training; returns once the web server answers."""
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    if settings.redis_is_embedded:
        start_redis(stack, settings)
    else:
        Redis.from_url(settings.redis_url, socket_connect_timeout=REDIS_SECONDS).ping()
    require_free(settings.port, "the backend")
    env = {**os.environ, **settings.as_env()}
    web = stack.start(_child("serve", ["serve"], settings, env))
    for queue in (GPU, STUDIO):
        stack.start(_child(f"worker-{queue}", ["worker", "--queue", queue], settings, env))
    web.wait_until(lambda: _answers(settings), START_SECONDS, "it answered")


def _child(name: str, command: list[str], settings: Settings, env: dict[str, str]) -> Process:
    run = [sys.executable, "-c", "from backend.cli import main; main()", *command]
    return Process(name, run, settings.home / "logs" / f"{name}.log", env)


def _answers(settings: Settings) -> bool:
    try:
        return requests.get(f"http://{settings.host}:{settings.port}/health", timeout=1).status_code == 200
    except requests.RequestException:
        return False


def _as_interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
