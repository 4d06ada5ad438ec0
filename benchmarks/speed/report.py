"""All facts as one JSON document, from which tables, picture and page can be made again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from benchmarks.speed import facts
from benchmarks.speed.facts import Draws, Fact, Memory, Times
from benchmarks.speed.made import Made


@dataclass(frozen=True)
class Report:
    made: Made
    facts: list[Fact]

    @property
    def times(self) -> list[Times]:
        return [fact for fact in self.facts if isinstance(fact, Times)]

    @property
    def memory(self) -> list[Memory]:
        return [fact for fact in self.facts if isinstance(fact, Memory)]

    @property
    def draws(self) -> list[Draws]:
        return [fact for fact in self.facts if isinstance(fact, Draws)]

    def tasks(self) -> dict[tuple[int, str], list[Times]]:
        """By rows and task, in the order in which they were first measured."""
        found: dict[tuple[int, str], list[Times]] = {}
        for one in self.times:
            found.setdefault((one.rows, one.task), []).append(one)
        return found

    def save(self, path: Path) -> None:
        """One fact per line, so that a change shows in a diff as what it is."""
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = ",\n".join(json.dumps(facts.as_dict(fact)) for fact in self.facts)
        path.write_text(f'{{"made": {json.dumps(self.made.as_dict())}, "facts": [\n{lines}\n]}}\n')

    @classmethod
    def load(cls, path: Path) -> Report:
        held = json.loads(path.read_text())
        return cls(Made.from_dict(held["made"]), [facts.from_dict(fact) for fact in held["facts"]])
