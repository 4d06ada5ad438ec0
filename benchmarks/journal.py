"""What has been run already: a line of JSON per finished run, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import json
import os
from pathlib import Path

from benchmarks.subsets.run import Run
from benchmarks.subsets.settings import Settings


class Journal:
    """Runs on this data with these settings. Lines of others stay in the file and are not looked at."""

    def __init__(self, path: Path, data: str, settings: Settings) -> None:
        self.path, self.data, self.settings = path, data, settings

    def runs(self) -> list[Run]:
        """In the order in which they ended."""
        if not self.path.exists():
            return []
        found = (_run(line) for line in self.path.read_text().splitlines())
        return [run for run in found if run and (run.data, run.settings) == (self.data, self.settings)]

    def add(self, run: Run) -> None:
        """On disk when this returns."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # whoever was killed in the middle of a line left no end of it
        last = self.path.read_text()[-1:] if self.path.exists() else ""
        with self.path.open("a") as file:
            file.write(("" if last in ("", "\n") else "\n") + json.dumps(run.as_dict()) + "\n")
            file.flush()
            os.fsync(file.fileno())


def _run(line: str) -> Run | None:
    """None where the line is only a part of one, or of another version of this benchmark."""
    try:
        return Run.from_dict(json.loads(line))
    except (ValueError, TypeError, KeyError):
        return None
