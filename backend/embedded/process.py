"""A supervised child process: started with a log of its own, stopped with everything it started itself."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path

PR_SET_PDEATHSIG = 1
POLL_SECONDS = 0.05
KILL_SECONDS = 5.0
TAIL_LINES = 15

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class ProcessFailed(RuntimeError):
    """A child that did not come up or ended by itself; the message ends with the last lines of its log."""


class Process:
    """One child in a session of its own, so that a terminal's Ctrl-C reaches only us and we decide the order.

    On Linux the kernel sends it SIGTERM when we die, however we die. SIGTERM rather than SIGKILL, because the
    children (a gunicorn, an RQ worker) have children of their own, which only they can take along.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str | Path],
        log: Path,
        env: Mapping[str, str] | None = None,
        before: Callable[[], None] = lambda: None,
    ):
        """`before` is called at each start and raises what keeps the child from starting, such as a port in use."""
        self.name = name
        self.argv = [str(part) for part in argv]
        self.log = log
        self.env = None if env is None else dict(env)
        self._before = before
        self._child: subprocess.Popen[bytes] | None = None
        self._log_start = 0
        self._started_at = time.monotonic()

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    @property
    def exit_code(self) -> int | None:
        """None while it runs, the negative signal number if one ended it.

        Looking does not reap it: until `stop` its id, and with it the session's, is given to nobody else.
        """
        if self._child is None:
            return None
        ended = os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    @property
    def running(self) -> bool:
        return self._child is not None and self.exit_code is None

    @property
    def age(self) -> float:
        """Seconds since its last start."""
        return time.monotonic() - self._started_at

    def start(self) -> None:
        if self.running:
            raise RuntimeError(f"{self.name} is already running")
        if threading.current_thread() is not threading.main_thread():
            # The kernel's death signal follows the starting thread, not the process: a child would end with it.
            raise RuntimeError(f"{self.name} must be started from the main thread")
        self._before()
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._log_start = log.tell()
            try:
                self._child = subprocess.Popen(
                    self.argv,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=self.env,
                    start_new_session=True,
                    preexec_fn=_die_with(os.getpid()),
                )
            except OSError as error:
                raise ProcessFailed(f"{self.name} could not be started: {error}") from error
        self._started_at = time.monotonic()

    def wait_until(self, check: Callable[[], bool], timeout: float, what: str) -> None:
        """Return once `check()` holds; fail if the child ends first or `timeout` seconds go by."""
        deadline = time.monotonic() + timeout
        while not check():
            if not self.running:
                if check():  # it came true and the child ended in between
                    return
                raise self.failure(f"ended with code {self.exit_code} before {what}")
            if time.monotonic() > deadline:
                raise self.failure(f"took more than {timeout:.0f} s until {what}")
            time.sleep(POLL_SECONDS)

    def failure(self, happened: str) -> ProcessFailed:
        return ProcessFailed(f"{self.name} {happened}; the end of {self.log}:\n{self.log_tail()}")

    def note(self, line: str) -> None:
        """A line of ours in the child's log, for whoever reads there what happened; a full disk costs only the line."""
        with suppress(OSError), self.log.open("a", encoding="utf-8") as log:
            log.write(f"--- {datetime.now(UTC).isoformat(timespec='seconds')} {line}\n")

    def log_tail(self, lines: int = TAIL_LINES) -> str:
        """The last lines written since the last start."""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            text = log.read().decode(errors="replace")
        return "\n".join(f"  {line}" for line in text.splitlines()[-lines:]) or "  (nothing)"

    def stop(self, grace: float = 10.0) -> None:
        """SIGTERM, and after `grace` seconds SIGKILL for whatever of its session is left. Twice is harmless."""
        if self._child is None:
            return
        os.killpg(self._child.pid, signal.SIGTERM)
        deadline = time.monotonic() + grace
        while self.running and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        _kill_session(self._child.pid)
        self._child.kill()
        self._child.wait()
        self._child = None


class Stack(ExitStack):
    """Children that belong together: stopped in reverse order on leaving, also when a later start fails."""

    def __init__(self) -> None:
        super().__init__()
        self.processes: list[Process] = []

    def start(self, process: Process, grace: float = 10.0) -> Process:
        process.start()
        self.processes.append(process)
        self.callback(process.stop, grace)
        return process

    def check(self) -> None:
        """Fail with the log of a child that has ended although nobody stopped it."""
        for process in self.processes:
            if not process.running:
                raise process.failure(f"ended with code {process.exit_code}")


def _die_with(parent: int) -> Callable[[], None] | None:
    """What a new child does before it becomes its program: ask the kernel for SIGTERM at its parent's death."""
    libc = _libc
    if libc is None:
        return None

    def prepare() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # the parent died before the request was made
            os._exit(1)

    return prepare


def _kill_session(session: int) -> None:
    """SIGKILL every process left in a session that a child of ours leads, and wait until they are gone: until then
    they hold their ports.

    By session, not by process group: an RQ work-horse makes a group of its own but stays in its worker's session.
    """
    deadline = time.monotonic() + KILL_SECONDS
    while (members := _session_members(session)) and time.monotonic() < deadline:
        for pid in members:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(POLL_SECONDS)


def _session_members(session: int) -> list[int]:
    """The living ones; what has ended and is only waiting to be reaped is no member any more."""
    members = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            if state not in "ZX" and os.getsid(int(folder.name)) == session:
                members.append(int(folder.name))
    return members
