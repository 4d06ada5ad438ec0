"""Rows as a table in one file: JSONL, CSV and Parquet."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import accumulate, chain
from pathlib import Path
from typing import IO, Any

from backend.exports.record import Columns, Lines
from iwes.training_set.columns import COLUMNS

FORMULA = re.compile(r"'|[\t\r\n]|\s*[=+\-@＝＋－＠]")
"""A text that begins so may be a formula to a spreadsheet and gets an apostrophe in front; so does one that has its own
apostrophe there. Whoever reads the file takes one away from each text that begins with one, and has the text back."""


def write_jsonl(path: Path, lines: Iterable[Lines]) -> None:
    with path.open("wb") as file:
        for some in lines:
            file.write(some.json)


def write_csv(path: Path, lines: Iterable[Lines]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv_writer(file, list(COLUMNS))
        for some in lines:
            writer.writerows(cells(some.columns))


def csv_writer(file: IO[str], columns: list[str]) -> Any:
    writer = csv.writer(file)  # its lines end in CR LF, as RFC 4180 has it, and so it quotes a lone CR as well
    writer.writerow(columns)
    return writer


def cells(columns: Columns) -> Iterator[tuple[object, ...]]:
    """Row by row. Only what people wrote can be a formula: all else is made here."""
    texts = {name: map(_text_cell, columns[name]) for name in ("image", "class")}
    lists = {name: map(_wholes_cell, columns[name]) for name in ("annotations", "annotators")}
    changed = columns | texts | lists | {"data": map(bytes.decode, columns["data"])}
    return zip(*changed.values(), strict=True)


def write_parquet(path: Path, lines: Iterable[Lines]) -> None:
    """Each batch is packed behind the back of the next, which needs no Python."""
    import pyarrow.parquet as parquet

    with parquet.ParquetWriter(path, schema()) as writer, ThreadPoolExecutor(1) as behind:
        packed: Future[None] | None = None
        for some in lines:
            made = batch(some.columns) if len(some.rows) else None
            if packed is not None:
                packed.result()
            packed = behind.submit(writer.write_batch, made) if made is not None else None
        if packed is not None:
            packed.result()


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


def batch(columns: Columns) -> Any:
    """Of Arrow, in the schema above."""
    import pyarrow as arrow

    arrays = []
    for field in (kinds := schema()):
        values, kind = columns[field.name], COLUMNS[field.name]
        if kind == "time":
            arrays.append(arrow.array(values, arrow.string()).cast(field.type))
        elif kind == "wholes":
            arrays.append(_lists(values))
        else:
            arrays.append(arrow.array(values, field.type))
    return arrow.RecordBatch.from_arrays(arrays, schema=kinds)


def _lists(values: Sequence[list[int]]) -> Any:
    """Much faster than list by list."""
    import pyarrow as arrow

    ends = [0, *accumulate(map(len, values))]
    return arrow.ListArray.from_arrays(arrow.array(ends, arrow.int32()), list(chain.from_iterable(values)))


def _text_cell(value: str | None) -> str | None:
    return f"'{value}" if value is not None and FORMULA.match(value) else value


def _wholes_cell(values: list[int]) -> str:
    return f"[{','.join(map(str, values))}]"
