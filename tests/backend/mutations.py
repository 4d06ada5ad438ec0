"""Real messages of Label Studio, spoilt: cut off, with a key missing, with a value that nobody expects."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CAPTURES = Path(__file__).parent.parent / "captures"
CANARY = "canary-c0ffee"
"""Stands for a secret in a message: no answer may show it."""

Place = tuple[str | int, ...]


def nested(levels: int) -> Any:
    value: Any = CANARY
    for level in range(levels):
        value = [value] if level % 2 else {"in": value}
    return value


JUNK: dict[str, Any] = {
    "null": None,
    "true": True,
    "zero": 0,
    "negative": -(2**31) - 1,
    "past 32 bits": 2**31,
    "past 63 bits": 2**63,
    "four hundred digits": 10**400,
    "half": 0.5,
    "NaN": math.nan,
    "minus infinity": -math.inf,
    "empty text": "",
    "long text": CANARY * 3000,
    "NUL": f"{CANARY}\0{CANARY}",
    "half a pair of surrogates": f"{CANARY}\ud800",
    "signs of all the world": f"{CANARY}ﷺ🐈‍⬛\u202e\ufeff\x1b[31m<script>'; DROP TABLE label; --",
    "first day of all": "0001-01-01T00:00:00+14:00",
    "last day of all": "9999-12-31T23:59:59-14:00",
    "list": [],
    "list of junk": [None, True, [], {}, CANARY, 1e308, {"id": 1}],
    "object": {},
    "object with another id": {"id": 2, CANARY: [CANARY]},
    "sixty levels": nested(60),
}


def captures() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Name, path and body of every request that was recorded with one; each body once."""
    seen = []
    for file in sorted(CAPTURES.glob("*.json")):
        for number, request in enumerate(json.loads(file.read_text())["requests"]):
            if request["body"] is not None and request["body"] not in seen:
                seen.append(request["body"])
                yield f"{file.stem}-{number}", request["path"], request["body"]


def as_sent(body: Any) -> bytes:
    return json.dumps(body).encode()


def spoilt(every: int = 1) -> Iterator[tuple[str, str, bytes]]:
    """The captures with each of their keys removed, and with each of their values replaced by all the junk there is.
    Where several carry the same kind of value at the same place, which is read the same way, one of them is spoilt.
    Of all these, one in `every`."""
    done = set()
    ways = [None, *JUNK]
    count = 0
    for name, path, body in captures():
        for place, value in places(body):
            read_alike = None if place[0] == "project" and place != ("project", "id") else body.get("action")
            if (path, read_alike, place, type(value)) in done:
                continue
            done.add((path, read_alike, place, type(value)))
            for way in ways:
                count += 1
                if count % every == 0:
                    changed = without(body, place) if way is None else replaced(body, place, JUNK[way])
                    yield f"{name}: {place} is {way or 'missing'}", path, as_sent(changed)


def truncated(step: int) -> Iterator[tuple[str, str, bytes]]:
    for name, path, body in captures():
        content = as_sent(body)
        for end in range(0, len(content), step):
            yield f"{name}: {end} bytes of it", path, content[:end]


def places(value: Any, above: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Every place with what it holds. Of lists only the first item's: the others are like it."""
    inside: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        inside = list(value.items())
    elif isinstance(value, list):
        inside = list(enumerate(value[:1]))
    for key, inner in inside:
        yield (*above, key), inner
        yield from places(inner, (*above, key))


def replaced(value: Any, place: Place, junk: Any) -> Any:
    if not place:
        return junk
    copy = value.copy()
    copy[place[0]] = replaced(value[place[0]], place[1:], junk)
    return copy


def without(value: Any, place: Place) -> Any:
    copy = value.copy()
    if len(place) == 1:
        del copy[place[0]]
    else:
        copy[place[0]] = without(value[place[0]], place[1:])
    return copy


def doubled(value: Any, junk: str, *, junk_first: bool) -> str:
    """As JSON in which every key stands twice, once with junk."""
    if isinstance(value, list):
        return f"[{', '.join(doubled(item, junk, junk_first=junk_first) for item in value)}]"
    if not isinstance(value, dict):
        return json.dumps(value)
    pairs = []
    for key, inner in value.items():
        both = [junk, doubled(inner, junk, junk_first=junk_first)]
        pairs += [f"{json.dumps(key)}: {one}" for one in (both if junk_first else both[::-1])]
    return f"{{{', '.join(pairs)}}}"
