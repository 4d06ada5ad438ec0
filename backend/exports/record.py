"""A row as files show it: every format has these columns, and the same values in them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from iwes.training_set.columns import COLUMNS
from store.weighted_set import WeightedRow, WeightedRows

OURS = "al_"
"""How the fields begin that this backend writes into a task's data; the columns say the same, and exactly."""

Record = dict[str, Any]
Columns = dict[str, Sequence[Any]]
"""Of the same names, in the same order; `data` is JSON in these."""


class Line(NamedTuple):
    """A row on its way into a file."""

    row: WeightedRow
    json: bytes
    """What stands in the file, as `as_json` has it: the digest needs it whatever the format."""

    @property
    def record(self) -> Record:
        """Made anew each time. Numbers of any length stay as they are."""
        found: Record = json.loads(self.json)
        return found


class Lines(NamedTuple):
    """Many of them: what is done for all at once costs a fraction of what it costs one by one."""

    rows: WeightedRows
    columns: Columns
    json: bytes
    """All of theirs, each with its end of line."""

    def __iter__(self) -> Iterator[Line]:  # type: ignore[override]
        return map(Line, self.rows, self.json.splitlines())


def lines_of(rows: WeightedRows, field: str, weights: Sequence[float]) -> Lines:
    """`field` is the one of the task that holds the image."""
    tasks = _each_read(rows["data"])
    images = [data.pop(field, None) for data in tasks]
    for data in tasks:
        for name in _ours(tuple(data)):
            del data[name]
    own: Columns = {
        "image": [None if image is None else clean(str(image)) for image in images],
        "class": [clean(name) for name in rows["class_name"]],
        "weight": weights,
        "data": _each_as_json(tasks),
    }
    columns = {name: own[name] if name in own else rows[name] for name in COLUMNS}
    return Lines(rows, columns, _joined(columns))


def columns_of(records: Sequence[Record]) -> Columns:
    values = zip(*[record.values() for record in records], strict=True)
    columns: Columns = dict(zip(COLUMNS, values, strict=True))
    return columns | {"data": _each_as_json(columns["data"])}


def _joined(columns: Columns) -> bytes:
    names, as_line = tuple(columns), orjson.OPT_APPEND_NEWLINE
    values = columns | {"data": map(orjson.Fragment, columns["data"])}
    rows = zip(*values.values(), strict=True)
    return b"".join([orjson.dumps(dict(zip(names, row, strict=False)), None, as_line) for row in rows])


@lru_cache(1024)  # the tasks of a project have the same few sets of fields
def _ours(names: tuple[str, ...]) -> list[str]:
    return [name for name in names if name.startswith(OURS)]


def clean(text: str) -> str:
    """Half a pair of surrogates, which JSON can hold and a file cannot, is spelled out."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def _each_read(texts: Sequence[str]) -> list[dict[str, Any]]:
    try:
        found = list(map(orjson.loads, texts))
    except orjson.JSONDecodeError:
        found = []
    return found if set(map(type, found)) == {dict} else [read_json(text) for text in texts]


def read_json(text: str) -> dict[str, Any]:
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:  # it is stricter than what was stored: NaN, and halves of surrogates
        found = json.loads(text)
    return found if isinstance(found, dict) else {}


def _each_as_json(values: Sequence[Mapping[str, Any]]) -> list[bytes]:
    try:
        return list(map(orjson.dumps, values))
    except TypeError:
        return [as_json(value) for value in values]


def as_json(value: Mapping[str, Any]) -> bytes:
    """The one way in which anything is put into JSON. The digest of a set is taken over rows in it, fields in the order
    of the columns, whatever its format."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return clean(json.dumps(value, ensure_ascii=False, separators=(",", ":"))).encode()
