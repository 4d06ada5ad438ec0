"""Has the work of the loop's rounds done again in a plain process, and puts both side by side."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.loop.rounds import Timed
from benchmarks.loop.split import Bare, Round


def compared(home: Path, files_root: Path, project_id: int, timed: Sequence[Timed], repeats: int) -> list[Round]:
    """The plain process runs a few times, each round counted with its median: what a busy machine adds to it would
    flatter the loop."""
    runs = [_bare(home, files_root, project_id, timed) for _ in range(repeats)]
    return [_side_by_side(one, [run[place] for run in runs]) for place, one in enumerate(timed)]


def _bare(home: Path, files_root: Path, project_id: int, timed: Sequence[Timed]) -> list[Bare]:
    scored = {one.number: one.scored for one in timed}
    asked = {"home": str(home), "files_root": str(files_root), "project": project_id, "scored": scored}
    command = [sys.executable, "-m", "benchmarks.loop.bare"]
    done = subprocess.run(command, input=json.dumps(asked), stdout=subprocess.PIPE, text=True, check=True)
    return [Bare(**one) for one in json.loads(done.stdout)]


def _side_by_side(one: Timed, bare: Sequence[Bare]) -> Round:
    middle = sorted(bare, key=lambda run: run.whole)[len(bare) // 2]
    return Round(one.number, one.examples, one.epochs, one.scored, one.split, middle)
