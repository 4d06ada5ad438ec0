"""Files that are whole or not there: what a kill or a power cut leaves is the last good one."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PARTIAL = ".partial"


def write(path: Path, content: bytes) -> None:
    """After this returns, the file is whole on the disk; until then, what was there before is untouched."""
    partial = path.with_name(f"{path.name}{PARTIAL}")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:  # most likely a full disk, which what was written so far would only keep full
        partial.unlink(missing_ok=True)
        raise OSError(error.errno, f"{error.strerror}: {len(content)} bytes could not be kept", str(path)) from error
    with _opened(path.parent) as directory:
        os.fsync(directory)


def clear(folder: Path) -> None:
    """Removes what writers that were killed left below the folder; whoever writes there now is left alone."""
    for left_over in folder.rglob(f"*{PARTIAL}"):
        with only_writer(left_over.parent):
            left_over.unlink(missing_ok=True)


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """One writer at a time: a worker taken for dead may wake up while its successor writes the same folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with _opened(folder) as directory:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    directory = os.open(folder, os.O_RDONLY)
    try:
        yield directory
    finally:
        os.close(directory)
