"""The process that does one job for a worker: it does not outlive the worker, and may end without a word."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def dies_with_its_worker(worker: int | None) -> None:
    """Asks the kernel to kill this process when its worker dies, however it dies (Linux only). Otherwise the job would
    go on unseen while another worker begins it again, with twice the memory and on the same GPU."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != worker:  # it died before we asked
            os._exit(1)


def how_it_ended(status: int | None) -> str:
    """In words, what the kernel says of a process that could not say itself; it says nothing of one that the worker
    itself had to kill."""
    if status is None:
        return "it took longer than it may, and was killed"
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        short = "; the machine may be short of memory" if os.WTERMSIG(status) == signal.SIGKILL else ""
        return f"its process was ended by {name}{short}"
    return f"its process ended with code {os.waitstatus_to_exitcode(status)} and without a word"
