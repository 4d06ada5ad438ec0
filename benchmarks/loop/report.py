"""All that was measured, as one JSON document, from which tables, picture and page can be made again."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.loop.beside import Side
from benchmarks.loop.settings import Settings
from benchmarks.loop.split import Round

LIBRARIES = ("torch", "numpy", "rq", "label-studio-ml")


@dataclass(frozen=True)
class Report:
    settings: Settings
    made_with: dict[str, Any]
    other_cores: dict[str, float]
    """Taken during the loop and during the bare work by what this benchmark did not start."""
    rounds: list[Round]
    sides: list[Side]

    def side(self, name: str) -> Side | None:
        return next((side for side in self.sides if side.name == name), None)

    def save(self, path: Path) -> None:
        """One round and one side per line, so that a change shows in a diff as what it is."""
        path.parent.mkdir(parents=True, exist_ok=True)
        head = f'"settings": {json.dumps(asdict(self.settings))},\n"made_with": {json.dumps(self.made_with)}'
        head += f',\n"other_cores": {json.dumps(self.other_cores)}'
        path.write_text(f'{{{head},\n"rounds": {_lines(self.rounds)},\n"sides": {_lines(self.sides)}}}\n')

    @classmethod
    def load(cls, path: Path) -> Report:
        held = json.loads(path.read_text())
        return cls(
            Settings(**{**held["settings"], "ways": tuple(held["settings"]["ways"])}),
            held["made_with"],
            held["other_cores"],
            [Round.from_dict(one) for one in held["rounds"]],
            [Side.from_dict(one) for one in held["sides"]],
        )


def made_with(label_studio: str) -> dict[str, Any]:
    versions = {name: version(name) for name in LIBRARIES}
    return {"label-studio": label_studio, **versions, "cores": os.cpu_count()}


def _lines(some: Sequence[Round] | Sequence[Side]) -> str:
    return "[\n" + ",\n".join(json.dumps(one.as_dict()) for one in some) + "\n]"
