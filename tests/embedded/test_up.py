"""`iwes up` as an admin runs it: what it cannot start it names, what dies it brings back."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from redis import Redis
from redis.exceptions import RedisError
from rq import Worker

from backend import up
from backend.embedded.ports import any_free
from backend.embedded.process import ProcessFailed, Stack
from jobs.settings import Settings

pytestmark = pytest.mark.slow

IWES = [sys.executable, "-c", "from backend.cli import main; main()", "up"]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.from_env({"IWES_HOME": str(tmp_path / "home"), "IWES_PORT": str(any_free())})


@contextmanager
def running(settings: Settings) -> Iterator[subprocess.Popen[str]]:
    env = {**os.environ, **settings.as_env()}
    started = subprocess.Popen(IWES, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT, env=env)
    try:
        yield started
    finally:
        started.terminate()
        started.communicate(timeout=60)


def await_(check: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def children(parent: int) -> dict[str, int]:
    """The children of a process by the name of their log, which is where they write."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                found[(folder / "fd" / "1").readlink().stem] = int(folder.name)
        except OSError:
            continue
    return found


def answers(settings: Settings) -> bool:
    try:
        return requests.get(f"{settings.backend_url}/health", timeout=2).ok
    except requests.RequestException:
        return False


def workers(settings: Settings) -> set[int]:
    try:
        return {worker.pid for worker in Worker.all(connection=Redis.from_url(settings.redis_url)) if worker.pid}
    except RedisError:
        return set()


def test_every_child_that_is_killed_comes_back_and_is_told_of(settings: Settings) -> None:
    with running(settings) as started:
        assert started.stdout is not None
        assert "the backend listens on" in started.stdout.readline()
        before = children(started.pid)
        assert set(before) == {"redis", "serve", "worker-gpu", "worker-studio"}
        for pid in before.values():
            os.kill(pid, signal.SIGKILL)

        def all_back() -> bool:
            now = children(started.pid)
            both = {now.get("worker-gpu"), now.get("worker-studio")}
            return both <= workers(settings) and not both & set(before.values()) and answers(settings)

        await_(all_back)
        now = children(started.pid)
        assert set(now) == set(before)
        assert not set(now.values()) & set(before.values())
        started.terminate()
        told, _ = started.communicate(timeout=60)
    for name in before:
        assert f"{name} was ended by signal 9 (Killed); it is started again in" in told
    assert told.endswith("stopped\n")
    assert not answers(settings)


def test_port_in_use_at_the_first_start_ends_it_with_one_line(settings: Settings) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", settings.port))
        other.listen()
        env = {**os.environ, **settings.as_env()}
        run = subprocess.run(IWES, capture_output=True, text=True, cwd=ROOT, env=env, timeout=120, check=False)
    assert run.returncode == 1
    assert run.stderr == f"iwes: port {settings.port}, wanted for the backend, is taken by another program: " + (
        "stop that program\n"
    )


def test_worker_that_cannot_start_at_all_fails_the_first_start_with_its_log(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(up, "GPU", "no-such-queue")
    with Stack() as stack, pytest.raises(ProcessFailed, match=r"worker-no-such-queue ended with code 2(.|\n)*invalid"):
        up.start_backend(stack, settings)
