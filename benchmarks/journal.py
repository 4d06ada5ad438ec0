"""What has been run already: a line of JSON per finished run, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar


class Recorded(Protocol):
    def as_dict(self) -> dict[str, Any]: ...


R = TypeVar("R", bound=Recorded)


class Journal(Generic[R]):
    """Runs that `counts` says are of this benchmark. Lines of others stay in the file and are not looked at."""

    def __init__(self, path: Path, read: Callable[[dict[str, Any]], R], counts: Callable[[R], bool]) -> None:
        self.path, self._read, self._counts = path, read, counts

    def runs(self) -> list[R]:
        """In the order in which they ended."""
        if not self.path.exists():
            return []
        found = (self._run(line) for line in self.path.read_text().splitlines())
        return [run for run in found if run is not None and self._counts(run)]

    def add(self, run: R) -> None:
        """On disk when this returns."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # whoever was killed in the middle of a line left no end of it
        with self.path.open("ab+") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - 1, 0))
            begin = b"" if file.read() in (b"", b"\n") else b"\n"
            file.write(begin + json.dumps(run.as_dict()).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _run(self, line: str) -> R | None:
        """None where the line is only a part of one, or of another version of the benchmark."""
        try:
            return self._read(json.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError):
            return None
