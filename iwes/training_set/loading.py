"""Reads an export of any format into a `TrainingSet`."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iwes.errors import BadArgument
from iwes.training_set.columns import COLUMNS
from iwes.training_set.training_set import TrainingSet

Row = dict[str, Any]
Found = tuple[list[Row], list[Any]]
"""The rows, with the columns of an export, and the image of each."""
Manifest = dict[str, Any] | None


def load_training_set(path: str | Path) -> TrainingSet:
    """The weighted training set that `iwes export` wrote to this file or folder, in any format. Raises BadArgument."""
    where = Path(path)
    manifest = _manifest(where)
    rows, images = _reader(where)(where, manifest)
    held = np.empty(len(images), dtype=object)
    held[:] = images
    columns = {name: _column([row.get(name) for row in rows], kind) for name, kind in COLUMNS.items()}
    classes = manifest["label_config"]["classes"] if manifest else sorted({row["class"] for row in rows})
    return TrainingSet(tuple(classes), columns, held, manifest)


def _manifest(where: Path) -> Manifest:
    beside = where / "manifest.json" if where.is_dir() else where.with_name(f"{where.name}.manifest.json")
    return dict(json.loads(beside.read_text(encoding="utf-8"))) if beside.is_file() else None


def _reader(where: Path) -> Callable[[Path, Manifest], Found]:
    if not where.exists():
        raise BadArgument(f"{where}: there is no such file or folder")
    if where.is_dir():
        if (where / "metadata.csv").is_file():
            return _image_folder
        if any((where / "data").glob("*.parquet")):
            return _hugging_face
        raise BadArgument(f"{where} holds neither metadata.csv nor data/*.parquet: it is no export of `iwes export`")
    if where.suffix.lower() == ".zip":
        raise BadArgument(f"{where}: unpack it first, and give the folder")
    readers = {".jsonl": _jsonl, ".csv": _csv, ".parquet": _parquet, ".json": _label_studio}
    if where.suffix.lower() not in readers:
        raise BadArgument(f"{where}: give a file that ends in {', '.join(readers)}, or a folder")
    return readers[where.suffix.lower()]


def _jsonl(where: Path, _: Manifest) -> Found:
    with where.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return rows, [row["image"] for row in rows]


def _csv(where: Path, _: Manifest) -> Found:
    csv.field_size_limit(sys.maxsize)  # an image may stand in its own address
    with where.open(encoding="utf-8", newline="") as file:
        rows: list[Row] = [
            {name: _PARSED[COLUMNS.get(name, "text")](cell) if cell else None for name, cell in row.items()}
            for row in csv.DictReader(file)
        ]
    return rows, [row["image"] for row in rows]


_PARSED: dict[str, Callable[[str], Any]] = {
    "whole": int,
    "number": float,
    "text": lambda cell: cell.removeprefix("'"),  # which keeps spreadsheets from taking it for a formula
    "time": str,
    "wholes": json.loads,
    "json": json.loads,
}


def _parquet(where: Path, _: Manifest) -> Found:
    rows = _read_parquet(where)
    return rows, [row["image"] for row in rows]


def _read_parquet(where: Path) -> list[Row]:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise BadArgument(f"{where}: Parquet needs pyarrow, which is not installed: pip install pyarrow") from None
    rows: list[Row] = parquet.read_table(where).to_pylist()
    return [row | {"data": json.loads(row["data"])} for row in rows]


def _image_folder(where: Path, _: Manifest) -> Found:
    rows, _addresses = _csv(where / "metadata.csv", None)
    root = where.resolve()
    images = [(root / row["file_name"]).resolve() for row in rows]
    if outside := [image for image in images if not image.is_relative_to(root)]:
        raise BadArgument(f"{where}/metadata.csv names {outside[0]}, which is outside of the folder")
    return rows, images


def _hugging_face(where: Path, manifest: Manifest) -> Found:
    if manifest is None:
        raise BadArgument(f"{where} has no manifest.json, which says what its classes are called")
    names = manifest["label_config"]["classes"]
    read = [row for part in sorted((where / "data").glob("*.parquet")) for row in _read_parquet(part)]
    images = [row["image"]["bytes"] for row in read]
    return [row | {"image": row["address"], "class": names[row["label"]]} for row in read], images


def _label_studio(where: Path, manifest: Manifest) -> Found:
    field = manifest["label_config"]["field"] if manifest else "image"
    rows = [_of_task(task, field) for task in json.loads(where.read_text(encoding="utf-8"))]
    return rows, [row["image"] for row in rows]


def _of_task(task: Row, field: str) -> Row:
    known = {name.removeprefix("al_"): value for name, value in task["data"].items() if name.startswith("al_")}
    data = {name: value for name, value in task["data"].items() if not name.startswith("al_") and name != field}
    lists: Row = {"annotations": [], "annotators": []}
    (class_name,) = task["annotations"][0]["result"][0]["value"]["choices"]
    return lists | known | {"task": task["id"], "image": task["data"][field], "class": class_name, "data": data}


def _column(values: Sequence[Any], kind: str) -> NDArray[Any]:
    if kind == "number" or (kind == "whole" and None in values):
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    if kind == "whole":
        return np.array(values, dtype=np.int64)
    if kind == "time":
        plain = [str(value).replace("+00:00", "").removesuffix("Z") for value in values]
        return np.array(plain, dtype="datetime64[us]")
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
