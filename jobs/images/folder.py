"""Reads the images of a data set from its folder, and no file outside of it."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from jobs.images.reasons import Away, SetAside, shown
from models.shelf import Key, key_of
from studio.files import MOST_BYTES

_ITS_OWN_FAULT = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENAMETOOLONG}
_READ_ONLY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""The path is free of links once it is resolved; and to open a pipe must not wait for whoever writes to it."""


class Folder:
    """Safe to share between threads."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def fetch(self, address: str) -> bytes:
        """The bytes of the file at this path below the root. Raises SetAside, or Away where the disk is to blame."""
        try:
            file = os.open(self._below(address), _READ_ONLY)
            with os.fdopen(file, "rb") as opened:
                return _content(opened.fileno(), address)
        except OSError as error:
            if not self._root.is_dir():
                raise Away(f"the folder {self._root} is not there now") from error
            said = f"{shown(address)} cannot be read: {error.strerror}"
            raise SetAside(said) if error.errno in _ITS_OWN_FAULT else Away(said) from error

    def key(self, address: str) -> Key:
        """Stands for the file as it is now: one that was written anew under the same name has another key."""
        try:
            found = (self._root / address).stat()
            state = f"{found.st_size} {found.st_mtime_ns}"
        except (OSError, ValueError):
            state = "not there"
        return key_of(f"folder:{self._root}\n{address}\n{state}")

    def _below(self, address: str) -> Path:
        try:
            path = (self._root / address).resolve()
        except (ValueError, RuntimeError) as error:  # a sign no path can hold; links that lead in a circle
            raise SetAside(f"{shown(address)} is no path: {error}") from error
        if path == self._root or not path.is_relative_to(self._root):
            raise SetAside(f"{shown(address)} leads out of the folder of the images")
        return path


def _content(file: int, address: str) -> bytes:
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode):
        raise SetAside(f"{shown(address)} is not a file")
    if found.st_size > MOST_BYTES:
        raise SetAside(f"{shown(address)} has more than {MOST_BYTES // 2**20} MB")
    parts, left = [], MOST_BYTES
    while left > 0 and (part := os.read(file, min(left, 2**20))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
