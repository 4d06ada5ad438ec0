"""Rows as a table in one file: JSONL, CSV and Parquet."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import IO, Any

from backend.exports.record import COLUMNS, Line, Record, as_json

BATCH = 5_000
"""Rows of one row group of Parquet, and those that are put into columns at a time."""
FORMULA = re.compile(r"'|[\t\r\n]|\s*[=+\-@＝＋－＠]")
"""A text that begins so may be a formula to a spreadsheet and gets an apostrophe in front; so does one that has its own
apostrophe there. Whoever reads the file takes one away from each text that begins with one, and has the text back."""


def write_jsonl(path: Path, lines: Iterable[Line]) -> None:
    with path.open("wb") as file:
        for line in lines:
            file.write(line.json)
            file.write(b"\n")


def write_csv(path: Path, lines: Iterable[Line]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv_rows(file, (line.record for line in lines), list(COLUMNS))


def csv_rows(file: IO[str], records: Iterable[Record], columns: list[str]) -> None:
    writer = csv.writer(file)  # its lines end in CR LF, as RFC 4180 has it, and so it quotes a lone CR as well
    writer.writerow(columns)
    writer.writerows(map(_cells, records))


def write_parquet(path: Path, lines: Iterable[Line]) -> None:
    import pyarrow.parquet as parquet

    with parquet.ParquetWriter(path, schema()) as writer:
        for batch in batches(line.record for line in lines):
            writer.write_batch(batch)


def schema() -> Any:
    import pyarrow as arrow

    kinds = {
        "whole": arrow.int64(),
        "number": arrow.float64(),
        "text": arrow.string(),
        "json": arrow.string(),
        "wholes": arrow.list_(arrow.int64()),
        "time": arrow.timestamp("us", tz="UTC"),
    }
    return arrow.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])


def batches(records: Iterable[Record]) -> Iterator[Any]:
    """Of Arrow, in the schema above."""
    import pyarrow as arrow

    left, kinds = iter(records), schema()
    while some := list(islice(left, BATCH)):
        columns = [[record[name] for record in some] for name in COLUMNS]
        columns[-1] = [as_text(data) for data in columns[-1]]
        arrays = [arrow.array(values, field.type) for values, field in zip(columns, kinds, strict=True)]
        yield arrow.RecordBatch.from_arrays(arrays, schema=kinds)


def as_text(value: Any) -> str:
    return as_json(value).decode()


def _cells(record: Record) -> list[object]:
    return [_CELL.get(type(value), str)(value) if value is not None else None for value in record.values()]


def _text_cell(value: str) -> str:
    return f"'{value}" if FORMULA.match(value) else value


def _same(value: object) -> object:
    return value


_CELL: dict[type, Callable[[Any], object]] = {
    str: _text_cell,
    int: _same,
    float: _same,
    list: as_text,
    dict: as_text,
    datetime: datetime.isoformat,
}
