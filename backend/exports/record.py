"""A row as files show it: every format has these columns, and the same values in them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from store.weighted_set import WeightedRow

OURS = "al_"
"""How the fields begin that this backend writes into a task's data; the columns say the same, and exactly."""

Record = dict[str, Any]


class Line(NamedTuple):
    """A row on its way into a file."""

    row: WeightedRow
    record: Record
    json: bytes
    """The record, as `as_json` has it: the digest needs it whatever the format."""


class Lines(NamedTuple):
    """Many of them: what is done for all at once costs a fraction of what it costs one by one."""

    rows: list[WeightedRow]
    records: list[Record]
    json: list[bytes]

    def __iter__(self) -> Iterator[Line]:  # type: ignore[override]
        return map(Line, self.rows, self.records, self.json)


def record_of(row: WeightedRow, field: str, weight: float) -> Record:
    """`field` is the one of the task that holds the image."""
    (task, text, class_name, _weight, probability, inclusion, score, passes, number, stratum, provenance, *rest) = row
    model_version, annotations, annotators, created, updated, _came = rest
    data = read_json(text)
    image = data.pop(field, None)
    if OURS in text:
        for name in _ours(tuple(data)):
            del data[name]
    return {
        "task": task,
        "image": None if image is None else clean(str(image)),
        "class": clean(class_name),
        "weight": weight,
        "probability": probability,
        "inclusion": inclusion,
        "score": score,
        "passes": passes,
        "round": number,
        "stratum": stratum,
        "provenance": provenance,
        "model_version": model_version,
        "annotations": annotations,
        "annotators": annotators,
        "created": created,
        "updated": updated,
        "data": data,
    }


@lru_cache(1024)  # the tasks of a project have the same few sets of fields
def _ours(names: tuple[str, ...]) -> list[str]:
    return [name for name in names if name.startswith(OURS)]


def clean(text: str) -> str:
    """Half a pair of surrogates, which JSON can hold and a file cannot, is spelled out."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def read_json(text: str) -> dict[str, Any]:
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:  # it is stricter than what was stored: NaN, and halves of surrogates
        found = json.loads(text)
    return found if isinstance(found, dict) else {}


def as_json(value: Record | Mapping[str, Any]) -> bytes:
    """The one way in which rows are put into JSON: fields in the order of the columns. The digest of a
    set is taken over these bytes, whatever its format."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return clean(json.dumps(value, ensure_ascii=False, separators=(",", ":"))).encode()
