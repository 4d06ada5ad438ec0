"""Files and folders that are whole or not there: what was there before stays until all is written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from backend.exports.errors import ExportError

MANIFEST = "manifest.json"
"""Name of the manifest in a folder; beside a file it is called like the file, with this behind."""


def manifest_of(out: Path, *, is_folder: bool) -> Path:
    return out / MANIFEST if is_folder else out.with_name(f"{out.name}.{MANIFEST}")


@contextmanager
def whole_file(path: Path) -> Iterator[tuple[Path, Path]]:
    """Two files beside it to write to, for it and for its manifest, which take their places together when all is
    written: killed in between, the manifest is missing, and never one of something else."""
    manifest = manifest_of(path, is_folder=False)
    partial, described = _beside(path), _beside(manifest)
    try:
        for new in (partial, described):
            new.unlink(missing_ok=True)
            os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))  # not through somebody else's link
        yield partial, described
        for new in (partial, described):
            _sync(new)
        manifest.unlink(missing_ok=True)
        partial.replace(path)
        described.replace(manifest)
    finally:
        partial.unlink(missing_ok=True)
        described.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A folder beside it to write to, which takes its place when all is written. One that is there is replaced if it is
    an export itself, or empty."""
    partial, old = _beside(path), path.with_name(f".{path.name}.{os.getpid()}.old")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        yield partial
        for parent, _folders, names in os.walk(partial):
            for name in names:
                _sync(Path(parent, name))
        check_folder(path)
        if path.exists():
            path.rename(old)
        partial.rename(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def check_folder(path: Path) -> None:
    """Raises ExportError where something is there that is not ours to replace."""
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise ExportError(f"--out {path}: a folder is written there, but that is a file or a link")
    if path.is_dir() and any(path.iterdir()) and not (path / MANIFEST).is_file():
        raise ExportError(f"--out {path}: that folder holds something else; give another one, or empty it first")


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.partial")


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
