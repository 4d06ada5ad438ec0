"""Writes the weighted training set to a JSONL, CSV or Parquet file: whole or not at all, one state always alike."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from jobs.dataset import NEEDS_PYARROW
from jobs.workplace import Workplace
from store import projects, subsets, weighted_set
from store.tables import Project, Subset
from store.weighted_set import WeightedRow

BATCH = 5_000
OURS = "al_"
"""How the fields begin that this backend writes into a task's data; the columns say the same, and exactly."""
FORMULA = re.compile(r"'|[\t\r\n]|\s*[=+\-@＝＋－＠]")
"""A text that begins so may be a formula to a spreadsheet and gets an apostrophe in front; so does one that has its own
apostrophe there. Whoever reads the file takes one away from each text that begins with one, and has the text back."""

Record = dict[str, Any]


class ExportError(ValueError):
    """A training set that cannot be written as asked; the message says what to change."""


def check(out: Path) -> None:
    """Finds out before hours of selecting whether the result could be written."""
    if out.suffix.lower() not in _WRITERS:
        raise ExportError(f"--out {out}: give a file that ends in {', '.join(_WRITERS)}")
    if out.is_dir() or not out.absolute().parent.is_dir():
        raise ExportError(f"--out {out}: {'that is a folder' if out.is_dir() else 'there is no such folder'}")
    if not os.access(out.absolute().parent, os.W_OK):
        raise ExportError(f"--out {out}: nothing may be written into that folder")
    if out.suffix.lower() == ".parquet" and find_spec("pyarrow") is None:
        raise ExportError(f"--out {out}: {NEEDS_PYARROW}")


def export(place: Workplace, project: Project, subset: Subset | None, out: Path) -> int:
    """Writes the set of a project, or of one of its subsets; returns how many rows it has."""
    check(out)
    count = 0

    def records() -> Iterator[Record]:
        nonlocal count
        with place.store.snapshot() as session:
            stored = projects.by_id(session, project.id)
            for row in weighted_set.rows(session, stored, subsets.by_id(session, subset.id) if subset else None):
                count += 1
                yield _record(row, stored.field)

    with _whole(out) as partial:
        _WRITERS[out.suffix.lower()](partial, records())
    return count


def _record(row: WeightedRow, field: str) -> Record:
    image = row.data.get(field)
    others = sorted(name for name in row.data if name != field and not name.startswith(OURS))
    return {
        "task": row.task,
        "image": None if image is None else _clean(str(image)),
        "class": _clean(row.class_name),
        "weight": row.weight,
        "probability": row.probability,
        "inclusion": row.inclusion,
        "score": row.score,
        "passes": row.passes,
        "round": row.round,
        "stratum": row.stratum,
        "provenance": row.provenance,
        "model_version": row.model_version,
        "annotations": list(row.annotations),
        "data": {name: row.data[name] for name in others},
    }


def _clean(text: str) -> str:
    """Half a pair of surrogates, which JSON can hold and a file cannot, is spelled out."""
    return text.encode(errors="backslashreplace").decode()


def _json(value: object) -> str:
    return _clean(json.dumps(value, ensure_ascii=False))


def _jsonl(path: Path, records: Iterable[Record]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{_json(record)}\n" for record in records)


def _csv(path: Path, records: Iterable[Record]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)  # its lines end in CR LF, as RFC 4180 has it, and so it quotes a lone CR as well
        writer.writerow(COLUMNS)
        writer.writerows([_cell(value) for value in record.values()] for record in records)


def _cell(value: object) -> object:
    if isinstance(value, dict | list):
        return _json(value)
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value


def _parquet(path: Path, records: Iterable[Record]) -> None:
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    kinds = {"whole": arrow.int64(), "number": arrow.float64(), "text": arrow.string()}
    kinds["wholes"] = arrow.list_(arrow.int64())
    schema = arrow.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])
    left = iter(records)
    with parquet.ParquetWriter(path, schema) as writer:
        while some := [record | {"data": _json(record["data"])} for record in islice(left, BATCH)]:
            writer.write_batch(arrow.RecordBatch.from_pylist(some, schema))


COLUMNS = {
    "task": "whole",
    "image": "text",
    "class": "text",
    "weight": "number",
    "probability": "number",
    "inclusion": "number",
    "score": "number",
    "passes": "whole",
    "round": "whole",
    "stratum": "text",
    "provenance": "text",
    "model_version": "text",
    "annotations": "wholes",
    "data": "text",
}
"""In the order of a record. `data` is what else Label Studio holds of the task, as JSON."""

_WRITERS: dict[str, Callable[[Path, Iterable[Record]], None]] = {".jsonl": _jsonl, ".csv": _csv, ".parquet": _parquet}


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A file beside it to write to, which takes its place when all is written; until then the old one stays."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.unlink(missing_ok=True)
    os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))  # not through somebody else's link
    try:
        yield partial
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
