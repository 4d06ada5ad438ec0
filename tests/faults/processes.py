"""The processes of a running backend, found by the log they write to: each child of `iwes up` has one of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Seen:
    pid: int
    parent: int
    group: int
    session: int

    @property
    def leads(self) -> bool:
        """A child of `iwes up`, not one of that child's own."""
        return self.session == self.pid

    @property
    def is_horse(self) -> bool:
        """RQ's work-horse makes a process group of its own; RQ's scheduler does not."""
        return self.group == self.pid and not self.leads


def writing_to(log: Path) -> list[Seen]:
    """The living processes whose output goes to a log, the leader first."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "fd" / "1").readlink() != log:
                continue
            state, *numbers = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if state not in "ZX":
            found.append(Seen(int(folder.name), *map(int, numbers)))
    return sorted(found, key=lambda one: (not one.leads, one.pid))
