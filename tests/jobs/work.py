"""Jobs for the tests of the queue and of the workers."""

from __future__ import annotations

import os
import time
from pathlib import Path


def count(number: int) -> int:
    return number + 1


def fail(number: int) -> None:
    raise ValueError(f"{number} cannot be done")


def hold(seconds: int) -> None:
    """Notes who does it when, and takes so long the first time."""
    diary = Path(os.environ["IWES_TEST_DIARY"])
    with diary.open("a") as file:
        file.write(f"{os.getpid()} {os.getppid()} {time.monotonic()}\n")
    if len(diary.read_text().splitlines()) == 1:
        time.sleep(seconds)
