"""Where a format of many files puts them: into a folder, or one after the other into a .zip."""

from __future__ import annotations

import shutil
from io import RawIOBase
from pathlib import Path
from typing import IO, Any, Protocol, cast
from zipfile import ZIP_STORED, ZipFile, ZipInfo


class Tree(Protocol):
    def add(self, name: str, content: bytes | Path) -> None:
        """A file under this name, with slashes; a path's content is copied."""


class FolderTree:
    def __init__(self, root: Path) -> None:
        self._root = root

    def add(self, name: str, content: bytes | Path) -> None:
        target = self._root.joinpath(*name.split("/"))
        if not target.resolve().is_relative_to(self._root.resolve()):
            raise ValueError(f"{name!r} leads out of the folder")  # names are made by us: this cannot be
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            target.write_bytes(content)
        else:
            shutil.copyfile(content, target)


class ZipTree:
    """Stored, not deflated (images are compressed already), and the same files give the same bytes. Nothing that was
    written is ever written over, so that it can be sent while it grows."""

    def __init__(self, file: IO[bytes]) -> None:
        self._target = _Forward(file)
        self._zip = ZipFile(cast(IO[bytes], self._target), "w", ZIP_STORED)

    def __enter__(self) -> ZipTree:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Of one that failed, no end is written: it must not look whole."""
        self._target.is_given_up = kind is not None
        self._zip.close()

    def add(self, name: str, content: bytes | Path) -> None:
        entry = ZipInfo(name)  # of 1980, as far as the archive knows
        entry.external_attr = 0o644 << 16
        if isinstance(content, bytes):
            self._zip.writestr(entry, content)
            return
        with content.open("rb") as source, self._zip.open(entry, "w", force_zip64=True) as target:
            shutil.copyfileobj(source, target, 2**20)


class _Forward(RawIOBase):
    """A file that cannot be gone back in."""

    is_given_up = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return len(data) if self.is_given_up else self._file.write(data)

    def flush(self) -> None:
        if not self._file.closed:
            self._file.flush()
