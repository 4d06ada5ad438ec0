"""Exports for downloads: each state of a set is written once, sent while it is written, and kept for a while.

A download that broke off goes on from the file that is kept, with the very same bytes, even if labels have arrived
since. Where the file is gone, the set is written anew: the same state gives the same bytes, and another one another
name, which tells whoever asks for the rest of the old one that the set has changed.

Any process may be killed: what it was writing is named after it, is never taken for whole, and the next writer removes
it.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from backend.exports import manifest
from backend.exports.export import Writing, check_installed
from backend.exports.whole import manifest_of
from backend.exports.wish import Wish
from jobs.workplace import Workplace
from models import durable
from store import projects, weighted_facts
from store.tables import Project

KEPT_SECONDS = 24 * 3600
MOST_DOWNLOADS = 8
"""Of a process at a time, manifests among them: each holds a thread, and until it is written a connection to the
store."""
LOOK_SECONDS = 0.02
PART_BYTES = 2**18
_NAME = re.compile(r"[0-9a-f]{16}-[0-9a-f]{32}")


@dataclass(frozen=True)
class Download:
    """A set that is there, or being written."""

    name: str
    """Stands for this state of this set."""
    file_name: str
    path: Path
    partial: Path
    writing: Future[None] | None

    @property
    def is_whole(self) -> bool:
        return self.writing is None or self.writing.done()

    def wait(self) -> Path:
        """Until it is whole. Raises what went wrong with it."""
        if self.writing is not None:
            self.writing.result()
        return self.path

    def manifest(self) -> bytes:
        return manifest_of(self.wait(), is_folder=False).read_bytes()

    def growing(self) -> Iterator[bytes]:
        """All of it, as it is written. Raises what goes wrong meanwhile."""
        while not self.is_whole and not self.partial.exists():
            time.sleep(LOOK_SECONDS)
        try:
            file = self.partial.open("rb")
        except FileNotFoundError:  # it is whole by now, or was written by somebody else
            file = self.wait().open("rb")
        with file:
            while True:
                ended = self.is_whole
                while part := file.read(PART_BYTES):
                    yield part
                if ended:
                    self.wait()
                    return
                time.sleep(LOOK_SECONDS)


class Kept:
    """Of one web process; others may share its folder."""

    def __init__(self, place: Workplace) -> None:
        self._place = place
        self._folder = place.settings.exports_folder
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="export")  # one at a time leaves room for webhooks
        self._lock = threading.Lock()
        self.places = threading.BoundedSemaphore(MOST_DOWNLOADS)
        """To be held while a download is made and sent."""
        self._writing: dict[str, Future[None]] = {}

    def open(self, project_id: int, wish: Wish, wanted: str | None = None) -> Download:
        """The set as it is now; or as it was, where that is `wanted` by its name and still here. It is begun to be
        written where it is not here. Raises what is wrong with the wish."""
        check_installed(wish.format)
        with ExitStack() as stack:
            session = stack.enter_context(self._place.store.snapshot())
            project = projects.by_id(session, project_id)
            scope = _digest(manifest.VERSION, project.id, project.studio_url, sorted(wish.words().items()))[:16]
            if wanted and _NAME.fullmatch(wanted) and wanted.startswith(f"{scope}-") and self._is_here(wanted):
                return self._download(wanted, project, wish)
            estimates = None if wish.part(session, project).as_of else manifest.told_by_labels(session, project)
            name = f"{scope}-{_state(session, project, wish, estimates)[:32]}"
            with self._lock:
                if not self._is_here(name):
                    writing = Writing(self._place, session, project, wish, estimates=estimates)
                    # what is written is what was named: in this same moment of the store, which goes over to the thread
                    moment = stack.pop_all()
                    self._writing[name] = self._threads.submit(self._write, name, writing, project, wish, moment)
                return self._download(name, project, wish)

    def _download(self, name: str, project: Project, wish: Wish) -> Download:
        return Download(name, wish.file_name(project), self._path(name), self._partial(name), self._writing.get(name))

    def _is_here(self, name: str) -> bool:
        return name in self._writing or self._path(name).exists()

    def _path(self, name: str) -> Path:
        return self._folder / name

    def _partial(self, name: str) -> Path:
        return self._folder / f"{name}.{os.getpid()}{durable.PARTIAL}"

    def _write(self, name: str, writing: Writing, project: Project, wish: Wish, moment: ExitStack) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with moment, durable.only_writer(self._folder):
                if not self._path(name).exists():
                    self._clear()
                    self._write_whole(name, writing, wish.file_name(project), wish)
        finally:
            with self._lock:
                del self._writing[name]

    def _write_whole(self, name: str, writing: Writing, file_name: str, wish: Wish) -> None:
        partial = self._partial(name)
        try:
            if wish.format.is_folder:
                with partial.open("wb") as file:
                    said = writing.zipped(file, file_name.removesuffix(".zip"))
            else:
                writing.to(partial)
                said = writing.manifest(file_name)
            durable.write(manifest_of(self._path(name), is_folder=False), manifest.as_bytes(said))
            partial.replace(self._path(name))
        finally:
            partial.unlink(missing_ok=True)

    def _clear(self) -> None:
        """What is old, what a writer left that was killed, and of the rest the oldest where there is too much. Whoever
        is reading a file reads on."""
        left = self._place.settings.shelf_bytes
        found = sorted((path.stat().st_mtime, path) for path in self._folder.iterdir())
        for written, path in reversed(found):
            left -= path.stat().st_size
            if left < 0 or written < time.time() - KEPT_SECONDS or path.name.endswith(durable.PARTIAL):
                path.unlink(missing_ok=True)


def _state(session: Session, project: Project, wish: Wish, estimates: dict[str, Any] | None) -> str:
    """Of all that the bytes depend on: the rows, and what the manifest says besides."""
    part = wish.part(session, project)
    settings = [getattr(project, column.key) for column in Project.__table__.columns if column.key not in _UNSEEN]
    sizes, skipped = weighted_facts.sizes(session, project), weighted_facts.skipped(session, project, part)
    rows = weighted_facts.fingerprint(session, project, part)
    return _digest(rows, settings, sizes, sorted(skipped.items()), estimates)


_UNSEEN = (
    *("token", "secret", "backend_url", "before", "connected"),
    *("webhook_seen_at", "reconciled_at", "read_until", "read_wholly_at"),
)
"""What no export shows, and what changes though the set does not."""


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode(errors="surrogatepass")).hexdigest()
