"""Writes the weighted training set of a project, or of a subset: the one way out, whatever the format and whoever
asks."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from sqlalchemy.orm import Session

from backend.exports import folders, tables
from backend.exports.errors import ExportError
from backend.exports.label_studio import write_label_studio
from backend.exports.manifest import Tally, as_bytes, manifest
from backend.exports.pictures import pictures
from backend.exports.record import Lines, lines_of
from backend.exports.trees import FolderTree, Tree, ZipTree
from backend.exports.weighing import weighing
from backend.exports.whole import MANIFEST, check_folder, whole_file, whole_folder
from backend.exports.wish import Format, Wish
from jobs.dataset import NEEDS_PYARROW
from jobs.workplace import Workplace
from store import projects, weighted_facts, weighted_set
from store.tables import Project

Told = Callable[[int, int], None]
"""Hears how many rows are written, and how many there are at most."""


@dataclass(frozen=True)
class Exported:
    rows: int
    manifest: dict[str, Any]


def check(format_: Format, out: Path) -> None:
    """Finds out before hours of work whether the result could be written. Raises ExportError."""
    parent = out.absolute().parent
    if not parent.is_dir():
        raise ExportError(f"--out {out}: there is no such folder")
    if not os.access(parent, os.W_OK):
        raise ExportError(f"--out {out}: nothing may be written into that folder")
    if format_.is_folder:
        check_folder(out)
    elif out.is_dir():
        raise ExportError(f"--out {out}: that is a folder, and {format_} is one file")
    check_installed(format_)


def check_installed(format_: Format) -> None:
    """Raises ExportError where a package is missing for it."""
    if format_ in (Format.PARQUET, Format.HUGGINGFACE) and find_spec("pyarrow") is None:
        raise ExportError(NEEDS_PYARROW)


def export(
    place: Workplace,
    project_id: int,
    wish: Wish,
    out: Path,
    *,
    told: Told | None = None,
) -> Exported:
    """To a file with its manifest beside it, or to a folder with it inside: whole, or not at all."""
    check(wish.format, out)
    with place.store.snapshot() as session:
        writing = Writing(place, session, projects.by_id(session, project_id), wish, told)
        if wish.format.is_folder:
            with whole_folder(out) as folder:
                writing.into(FolderTree(folder))
                found = writing.manifest(out.name)
                (folder / MANIFEST).write_bytes(as_bytes(found))
        else:
            with whole_file(out) as (partial, described):
                writing.to(partial)
                found = writing.manifest(out.name)
                described.write_bytes(as_bytes(found))
    return Exported(writing.tally.rows, found)


class Writing:
    """One set, being written in one moment of the store."""

    def __init__(
        self,
        place: Workplace,
        session: Session,
        project: Project,
        wish: Wish,
        told: Told | None = None,
        estimates: dict[str, Any] | None = None,
    ) -> None:
        """`estimates` are those of this very moment, where they were worked out before."""
        self.tally = Tally()
        self._place, self._session, self._project, self._wish, self._told = place, session, project, wish, told
        self._part = wish.part(session, project)
        self._estimates = estimates
        self._more: dict[str, Any] = {}

    def lines(self) -> Iterator[Lines]:
        """The rows, not yet counted."""
        weigh = weighing(self._session, self._project, self._part, self._wish.weights)
        field = self._project.field
        most = weighted_facts.most(self._session, self._project, self._part) if self._told else 0
        number = 0
        for rows in weighted_set.chunks(self._session, self._project, self._part):
            yield lines_of(rows, field, weigh(rows))
            number += len(rows)
            if self._told:
                self._told(number, most)

    def to(self, path: Path) -> None:
        """One file, of a format that is one."""
        lines = self.tally.counted(self.lines())
        with _uncollected():
            if self._wish.format is Format.LABEL_STUDIO:
                write_label_studio(path, lines, self._project)
            else:
                _TABLES[self._wish.format](path, lines)

    def into(self, tree: Tree) -> None:
        """Many files, without the manifest."""
        found = pictures(self._place, self._project, self.lines(), self.tally)
        self._more = _FOLDERS[self._wish.format](tree, found, self._project.classes)

    def zipped(self, file: IO[bytes], name: str) -> dict[str, Any]:
        """Many files in one, the manifest among them, which is returned."""
        with ZipTree(file) as tree:
            self.into(tree)
            found = self.manifest(name)
            tree.add(MANIFEST, as_bytes(found))
        return found

    def manifest(self, out: str) -> dict[str, Any]:
        """Once all is written."""
        with _uncollected():
            return manifest(
                *(self._session, self._project, self._wish, self._part, self.tally),
                out=out,
                told=self._estimates,
                more=self._more,
            )


@contextmanager
def _uncollected() -> Iterator[None]:
    """Rows hold no cycles, and to look for some among millions of them takes as long as to read them."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


_TABLES = {Format.JSONL: tables.write_jsonl, Format.CSV: tables.write_csv, Format.PARQUET: tables.write_parquet}
_FOLDERS = {Format.IMAGEFOLDER: folders.write_imagefolder, Format.HUGGINGFACE: folders.write_huggingface}
