"""The raw results as one JSON document, from which tables, pictures and page can be made again."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.journal import Recorded

R = TypeVar("R")


def save(path: Path, runs: Sequence[Recorded]) -> None:
    """One run per line, so that a change shows in a diff as what it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made_with = json.dumps({name: version(name) for name in ("torch", "numpy")})
    lines = ",\n".join(json.dumps(run.as_dict()) for run in runs)
    path.write_text(f'{{"made_with": {made_with}, "runs": [\n{lines}\n]}}\n')


def load(path: Path, read: Callable[[dict[str, Any]], R]) -> list[R]:
    return [read(run) for run in json.loads(path.read_text())["runs"]]
