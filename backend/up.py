"""`iwes up`: everything one machine needs, as children of one process."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from functools import partial
from types import FrameType

import click
import requests
from redis import Redis
from rq import Worker

from backend.admin_token import check_reach, sign_in_hint
from backend.embedded.ports import require_free
from backend.embedded.process import Process, Stack
from backend.embedded.redis import start_redis
from backend.embedded.supervision import LOOK_SECONDS, Supervisor
from jobs.queues import GPU, STUDIO
from jobs.settings import Settings

START_SECONDS = 90.0
REDIS_SECONDS = 5.0


def up(settings: Settings) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _as_interrupt)
    try:
        with Stack() as stack:
            start_backend(stack, settings)
            click.echo(f"the backend listens on {settings.backend_url}; stop it with Ctrl-C")
            click.echo(sign_in_hint(settings))
            supervisor = Supervisor(stack, click.echo)
            while True:
                supervisor.look()
                time.sleep(LOOK_SECONDS)
    except KeyboardInterrupt:
        click.echo("stopped")


def start_backend(stack: Stack, settings: Settings) -> None:
    """Redis where none is given, the web server, and a worker for each queue, so that publishing never waits for a
    training; returns once the web server answers and the workers work. Whichever cannot start fails here, with the end
    of its log."""
    check_reach(settings)
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    if settings.redis_is_embedded:
        start_redis(stack, settings)
    redis = Redis.from_url(settings.redis_url, socket_connect_timeout=REDIS_SECONDS)
    redis.ping()
    free = partial(require_free, settings.port, "the backend")
    web = stack.start(_child("serve", ["serve"], settings, before=free))
    workers = [
        stack.start(_child(f"worker-{queue}", ["worker", "--queue", queue], settings)) for queue in (GPU, STUDIO)
    ]
    web.wait_until(lambda: _answers(settings), START_SECONDS, "it answered")
    for worker in workers:
        worker.wait_until(partial(_works, redis, worker), START_SECONDS, "it worked")


def _child(name: str, command: list[str], settings: Settings, before: Callable[[], None] = lambda: None) -> Process:
    run = [sys.executable, "-c", "from backend.cli import main; main()", *command]
    env = {**os.environ, **settings.as_env()}
    return Process(name, run, settings.home / "logs" / f"{name}.log", env, before)


def _answers(settings: Settings) -> bool:
    try:
        return requests.get(f"http://{settings.address}/health", timeout=1).status_code == 200
    except requests.RequestException:
        return False


def _works(redis: Redis, process: Process) -> bool:
    """Whether a worker of ours has reported for work: RQ knows it by its host and process id."""
    here = socket.gethostname()
    return any(worker.pid == process.pid and worker.hostname == here for worker in Worker.all(connection=redis))


def _as_interrupt(_signal: int, _frame: FrameType | None) -> None:
    """Once: what follows is an orderly stop, which a second Ctrl-C must not cut short."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
