"""A supervisor: whatever ends is started again, told about, and never doubled."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from backend.embedded import supervision
from backend.embedded.ports import require_free
from backend.embedded.process import Process, Stack
from backend.embedded.supervision import FIRST_WAIT, JITTER, LONGEST_WAIT, Supervisor, wait_after

FOREVER = "import time; time.sleep(600)"


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "FIRST_WAIT", 0.02)


def python(code: str, folder: Path, before: Callable[[], None] = lambda: None) -> Process:
    return Process("child", [sys.executable, "-c", code], folder / "child.log", before=before)


def look_until(supervisor: Supervisor, check: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline
        supervisor.look()
        time.sleep(0.01)


def kill(process: Process) -> int:
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    return process.pid


def test_killed_child_is_started_again_and_both_console_and_log_tell(tmp_path: Path) -> None:
    told: list[str] = []
    with Stack() as stack:
        child = stack.start(python(FOREVER, tmp_path))
        supervisor = Supervisor(stack, told.append)
        supervisor.look()
        assert told == []
        killed = kill(child)
        look_until(supervisor, lambda: child.running and child.pid != killed)
    (line,) = told
    assert line.startswith("child was ended by signal 9 (Killed); it is started again in 0.0 s")
    assert str(child.log) in line
    assert "child was ended by signal 9" in child.log.read_text()


def test_what_a_child_left_behind_is_gone_before_it_is_started_again(tmp_path: Path) -> None:
    """An RQ work-horse would train on beside its successor; gunicorn's workers would keep the port."""
    code = "import os, time\nif os.fork() == 0:\n    os.setpgrp(); print(os.getpid(), flush=True)\ntime.sleep(600)"
    with Stack() as stack:
        child = stack.start(python(code, tmp_path))
        child.wait_until(lambda: child.log_tail().strip().isdigit(), 10, "it had a child")
        horse = int(child.log_tail())
        supervisor = Supervisor(stack, lambda line: None)
        killed = kill(child)
        look_until(supervisor, lambda: child.running and child.pid != killed)
        status = Path(f"/proc/{horse}/stat")
        assert not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z"


def test_child_that_keeps_ending_is_tried_again_and_again_with_growing_waits(tmp_path: Path) -> None:
    told: list[str] = []
    with Stack() as stack:
        stack.start(python("raise SystemExit('no such database')", tmp_path))
        look_until(Supervisor(stack, told.append), lambda: len(told) == 5)
    assert all("child ended with code 1; it is started again in" in line for line in told)
    waits = [float(line.partition("again in ")[2].split()[0]) for line in told]
    assert waits == sorted(waits)
    assert waits[-1] >= 0.2


def test_waits_double_up_to_half_a_minute_and_never_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "FIRST_WAIT", FIRST_WAIT)
    for falls in range(5):
        assert wait_after(falls) == pytest.approx(FIRST_WAIT * 2**falls, rel=JITTER)
    assert LONGEST_WAIT * (1 - JITTER) <= wait_after(10**9) <= LONGEST_WAIT
    assert len({wait_after(3) for _ in range(10)}) > 1


def test_after_a_steady_time_the_first_wait_is_the_short_one_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervision, "STEADY_SECONDS", 0.0)
    told: list[str] = []
    with Stack() as stack:
        stack.start(python("raise SystemExit(3)", tmp_path))
        look_until(Supervisor(stack, told.append), lambda: len(told) == 6)
    assert all(line.partition("again in ")[2].startswith("0.0 s") for line in told)


def test_port_taken_meanwhile_is_named_and_the_child_starts_once_it_is_free(tmp_path: Path) -> None:
    told: list[str] = []
    with Stack() as stack, socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        other.close()
        child = stack.start(python(FOREVER, tmp_path, partial(require_free, port, "the child")))
        supervisor = Supervisor(stack, told.append)
        with socket.socket() as thief:
            thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            thief.bind(("127.0.0.1", port))
            thief.listen()
            killed = kill(child)
            look_until(supervisor, lambda: len(told) == 3)
            assert not child.running
        look_until(supervisor, lambda: child.running and child.pid != killed)
    assert f"child could not be started again: port {port}, wanted for the child, is taken" in told[1]
