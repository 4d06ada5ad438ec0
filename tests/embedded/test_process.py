"""A supervised child: what it says when it fails, and that nothing of it stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from backend.embedded.process import Process, ProcessFailed, Stack

FOREVER = "import time; time.sleep(600)"


def python(name: str, code: str, folder: Path) -> Process:
    return Process(name, [sys.executable, "-c", code], folder / f"{name}.log")


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_for(check, seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while not check() and time.monotonic() < deadline:
        time.sleep(0.02)
    return bool(check())


def test_child_that_ends_early_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    child = python("broken", "print('all fine'); raise SystemExit('no such database')", tmp_path)
    child.start()
    with pytest.raises(ProcessFailed, match=r"broken ended with code 1 before it answered(.|\n)*no such database"):
        child.wait_until(lambda: False, 10, "it answered")


def test_the_log_of_an_earlier_start_is_kept_but_not_shown(tmp_path: Path) -> None:
    for word in ("first", "second"):
        child = python("again", f"raise SystemExit('{word}')", tmp_path)
        child.start()
        with pytest.raises(ProcessFailed) as failure:
            child.wait_until(lambda: False, 10, "it answered")
    assert "second" in str(failure.value)
    assert "first" not in str(failure.value)
    assert "first" in child.log.read_text()


def test_child_that_never_gets_ready_is_reported(tmp_path: Path) -> None:
    child = python("slow", FOREVER, tmp_path)
    child.start()
    try:
        with pytest.raises(ProcessFailed, match="slow took more than 0 s until it answered"):
            child.wait_until(lambda: False, 0.2, "it answered")
    finally:
        child.stop()


def test_program_that_does_not_exist_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed, match=r"ghost could not be started.*No such file"):
        Process("ghost", ["/nowhere/ghost"], tmp_path / "ghost.log").start()


def test_stopping_twice_or_before_the_start_is_harmless(tmp_path: Path) -> None:
    child = python("twice", FOREVER, tmp_path)
    child.stop()
    child.start()
    child.stop()
    child.stop()
    assert not child.running


def test_child_that_ignores_sigterm_is_killed_after_the_grace_period(tmp_path: Path) -> None:
    stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); " + FOREVER
    child = python("stubborn", stubborn, tmp_path)
    child.start()
    child.wait_until(lambda: "up" in child.log_tail(), 10, "it was up")
    began = time.monotonic()
    child.stop(grace=0.3)
    assert not child.running
    assert time.monotonic() - began < 5


def test_grandchild_in_a_process_group_of_its_own_is_stopped_too(tmp_path: Path) -> None:
    """As an RQ work-horse is: it leaves its worker's group but not its session."""
    code = "import os, time\nif os.fork() == 0:\n    os.setpgrp(); print(os.getpid(), flush=True)\ntime.sleep(600)"
    child = python("worker", code, tmp_path)
    child.start()
    child.wait_until(lambda: child.log_tail().strip().isdigit(), 10, "it had a child")
    horse = int(child.log_tail())
    assert alive(horse)
    child.stop(grace=1)
    assert wait_for(lambda: not alive(horse))


def start_all(children: list[Process]) -> None:
    with Stack() as stack:
        for child in children:
            stack.start(child)
            child.wait_until(lambda child=child: "up" in child.log_tail(), 10, "it was up")


def test_stack_stops_in_reverse_order_also_when_a_later_start_fails(tmp_path: Path) -> None:
    note = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: (print('stopped', flush=True), sys.exit(0)))\n"
    children = [python(name, f"{note}print('up', flush=True)\n{FOREVER}", tmp_path) for name in ("one", "two")]
    ghost = Process("ghost", ["/nowhere/ghost"], tmp_path / "ghost.log")
    with pytest.raises(ProcessFailed, match="ghost"):
        start_all([*children, ghost])
    first, second = ((tmp_path / f"{name}.log") for name in ("one", "two"))
    assert "stopped" in first.read_text()
    assert second.stat().st_mtime_ns < first.stat().st_mtime_ns


def test_stack_tells_which_child_ended_by_itself(tmp_path: Path) -> None:
    with Stack() as stack:
        stack.start(python("healthy", FOREVER, tmp_path))
        broken = stack.start(python("broken", "raise SystemExit('out of memory')", tmp_path))
        assert wait_for(lambda: not broken.running)
        with pytest.raises(ProcessFailed, match=r"broken ended with code 1(.|\n)*out of memory"):
            stack.check()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's death signal is Linux's")
def test_child_dies_when_we_are_killed_outright(tmp_path: Path) -> None:
    code = f"""
import time
from pathlib import Path
from backend.embedded.process import Process
child = Process("child", ["sleep", "600"], Path({str(tmp_path)!r}) / "child.log")
child.start()
print(child.pid, flush=True)
time.sleep(600)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert alive(child)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    assert wait_for(lambda: not alive(child))
