"""The C library keeps what a batch gives back."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import resource, sys, torch
from models.allocator import keep_freed_memory
if sys.argv[1] == "kept":
    assert keep_freed_memory() and keep_freed_memory()
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        torch.ones(2**23) + 1
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(faults())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the option is glibc's")
def test_memory_that_is_kept_is_not_faulted_in_again() -> None:
    faults = {
        how: int(subprocess.run([sys.executable, "-c", CODE, how], capture_output=True, text=True, check=True).stdout)
        for how in ("kept", "given back")
    }
    assert faults["kept"] < faults["given back"] / 2
