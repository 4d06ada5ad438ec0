"""Labelled images outside of Label Studio: a folder per class, or a table that names each image's file and class."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

SUFFIXES = (
    *(".jpg", ".jpeg", ".jpe", ".png", ".gif", ".webp", ".bmp", ".tif", ".tiff"),
    *(".ppm", ".pgm", ".pbm", ".pnm", ".jp2", ".j2k", ".avif"),
)
IMAGE_COLUMNS = ("image", "file", "filename", "file_name", "path")
LABEL_COLUMNS = ("label", "class")
NEEDS_PYARROW = "Parquet needs pyarrow, which is not installed: pip install 'iwes-label-studio[parquet]'"


class DatasetError(ValueError):
    """A data set that cannot be used as it is; the message says what is wrong and what to do."""


@dataclass(frozen=True)
class Dataset:
    root: Path
    """Below it lie all images."""
    source: str
    """Where the classes come from, to tell two data sets of one root apart: a table and its column; empty for a folder
    per class."""
    labels: dict[str, str]
    """The class of each image by its path below the root, in the order of the paths."""

    @property
    def classes(self) -> list[str]:
        return sorted(set(self.labels.values()))

    @property
    def title(self) -> str:
        return self.root.name if not self.source else f"{self.root.name}, {Path(self.source).name}"


def read(images: Path, labels: str | None = None) -> Dataset:
    """The data set at a folder or a table. For a folder, `labels` is the table of its labels, if its sub-folders do not
    tell them; for a table, the column that does. Raises DatasetError."""
    if images.is_dir():
        return _of_folders(images) if labels is None else _of_table(images, Path(labels), None)
    if not images.exists():
        raise DatasetError(f"--images {images}: there is no such file or folder")
    return _of_table(images.parent, images, labels)


def _of_folders(root: Path) -> Dataset:
    labels: dict[str, str] = {}
    flat = 0
    for entry in sorted(os.scandir(root), key=lambda entry: entry.name):
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            name = _text(entry.name, root)
            for path in _images_in(Path(entry.path)):
                labels[_text(path.relative_to(root).as_posix(), root)] = name
        else:
            flat += Path(entry.name).suffix.lower() in SUFFIXES
    if flat:
        raise DatasetError(
            f"--images {root} holds {flat} images outside of any sub-folder: put each into one for its class, "
            "or give --labels FILE, a table with the columns image and label"
        )
    if not labels:
        raise DatasetError(f"--images {root} holds no images; one sub-folder per class is expected")
    return _checked(Dataset(root.resolve(), "", dict(sorted(labels.items()))), str(root))


def _images_in(folder: Path) -> Iterator[Path]:
    for parent, inner, names in os.walk(folder):
        inner[:] = [name for name in inner if not name.startswith(".")]
        for name in names:
            if not name.startswith(".") and Path(name).suffix.lower() in SUFFIXES:
                yield Path(parent, name)


def _text(name: str, root: Path) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise DatasetError(f"{root} holds a file whose name is not in UTF-8: {name!r}; rename it") from None
    return name


def _of_table(root: Path, table: Path, column: str | None) -> Dataset:
    read_table = _READERS.get(table.suffix.lower())
    if read_table is None:
        raise DatasetError(f"{table} is no table of images: give a {', '.join(_READERS)} file")
    if not table.is_file():
        raise DatasetError(f"{table}: there is no such file")
    try:
        columns, rows = read_table(table)
        if not columns:
            raise DatasetError(f"{table} is empty: give one row for each image")
        image = _column(table, columns, IMAGE_COLUMNS, None, "image")
        label = _column(table, columns, LABEL_COLUMNS, column, "label")
        labels = _labels(table, ((where, row.get(image), row.get(label)) for where, row in rows([image, label])))
    except (UnicodeDecodeError, csv.Error) as error:
        raise DatasetError(f"{table} cannot be read as a table in UTF-8: {error}") from error
    if not labels:
        raise DatasetError(f"{table} has no rows: give one for each image")
    source = f"{table.resolve()}:{label}"
    return _checked(Dataset(root.resolve(), source, dict(sorted(labels.items()))), str(table))


def _column(table: Path, columns: Sequence[str], usual: Sequence[str], named: str | None, what: str) -> str:
    if named is not None:
        if named not in columns:
            raise DatasetError(f"{table} has no column {named!r}; --labels may name one of: {_listed(columns)}")
        return named
    found = [name for wanted in usual for name in columns if name.strip().lower() == wanted]
    if not found:
        other = " or name it with --labels COLUMN" if what == "label" else ""
        raise DatasetError(
            f"{table} has no {what} column: call one {', '.join(usual[:-1])} or {usual[-1]}{other}. "
            f"It has: {_listed(columns)}"
        )
    return found[0]


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(map(repr, columns)) or "none"


def _labels(table: Path, rows: Iterable[tuple[str, Any, Any]]) -> dict[str, str]:
    labels: dict[str, str] = {}
    seen: dict[str, str] = {}
    for where, image, label in rows:
        path = _below(image, f"{table}, {where}")
        name = "" if label is None or isinstance(label, dict | list) else str(label).strip()
        if not name:
            raise DatasetError(f"{table}, {where}: {path} has no label; give it one, or take the row out")
        if path in seen:
            raise DatasetError(f"{table}, {where}: {path} is there twice, first in {seen[path]}; take one out")
        seen[path], labels[path] = where, name
    return labels


def _below(image: Any, where: str) -> str:
    """The path as it is kept: relative to the root, which it does not leave, and written in one way."""
    if not isinstance(image, str) or not image.strip():
        raise DatasetError(f"{where}: the path of an image is expected, not {repr(image)[:120]}")
    path = PurePosixPath(image.strip())
    if "://" in image or image.startswith("data:"):
        raise DatasetError(f"{where}: {image[:120]!r} is a web address; give the path of a file")
    if path.is_absolute() or ".." in path.parts:
        raise DatasetError(
            f"{where}: {image[:120]!r} leaves the folder of the images; give paths relative to it, without `..`"
        )
    if "\0" in image:
        raise DatasetError(f"{where}: {image[:120]!r} is no path")
    try:
        image.encode()
    except UnicodeEncodeError:
        raise DatasetError(f"{where}: {image[:120]!r} is not in UTF-8") from None
    return str(path)


def _checked(dataset: Dataset, where: str) -> Dataset:
    if len(dataset.classes) < 2:
        raise DatasetError(f"{where} has one class only, {dataset.classes[0]!r}: two or more are needed")
    return dataset


Rows = Iterator[tuple[str, dict[str, Any]]]
"""Each with the words for where it stands."""
Table = tuple[list[str], Callable[[Sequence[str]], Rows]]
"""Its columns, and its rows with at least some of them."""


def _csv(table: Path) -> Table:
    def rows(_: Sequence[str]) -> Rows:
        with table.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            for row in reader:
                yield f"line {reader.line_num}", row

    with table.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file).fieldnames or []), rows


def _jsonl(table: Path) -> Table:
    def rows(_: Sequence[str]) -> Rows:
        with table.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except ValueError as error:
                    raise DatasetError(f"{table}, line {number} is not JSON: {error}") from error
                if not isinstance(row, dict):
                    raise DatasetError(f"{table}, line {number} is not a JSON object")
                yield f"line {number}", row

    _, first = next(rows(()), ("", {}))
    return list(first), rows


def _parquet(table: Path) -> Table:
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise DatasetError(f"{table}: {NEEDS_PYARROW}") from None
    try:
        opened = parquet.ParquetFile(table)
    except arrow.ArrowInvalid as error:
        raise DatasetError(f"{table} is not a Parquet file: {error}") from error

    def rows(columns: Sequence[str]) -> Rows:
        batches = opened.iter_batches(columns=list(columns))
        for number, row in enumerate((row for batch in batches for row in batch.to_pylist()), 1):
            yield f"row {number}", row

    return list(opened.schema_arrow.names), rows


_READERS: dict[str, Callable[[Path], Table]] = {".csv": _csv, ".parquet": _parquet, ".jsonl": _jsonl}
