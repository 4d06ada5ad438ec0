"""The raw results as one JSON document, from which tables, picture and page can be made again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from benchmarks.subsets.run import Run


def save(path: Path, runs: Sequence[Run]) -> None:
    """One run per line, so that a change shows in a diff as what it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made_with = json.dumps({name: version(name) for name in ("torch", "numpy")})
    lines = ",\n".join(json.dumps(run.as_dict()) for run in runs)
    path.write_text(f'{{"made_with": {made_with}, "runs": [\n{lines}\n]}}\n')


def load(path: Path) -> list[Run]:
    return [Run.from_dict(run) for run in json.loads(path.read_text())["runs"]]
