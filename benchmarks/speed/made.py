"""What facts were made with: it must be equal for two of them to stand in one table."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.speed import facts
from benchmarks.speed.facts import Fact
from benchmarks.speed.settings import Settings

PROJECT = Path(__file__).resolve().parents[2]
MEASURED = (PROJECT / "iwes", Path(__file__).parent / "measure")


@dataclass(frozen=True)
class Made:
    settings: Settings
    code: str  # digest of what is measured and of what measures it
    versions: dict[str, str]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Made:
        return cls(**{**values, "settings": Settings(**values["settings"])})


@dataclass(frozen=True)
class Record:
    """A line of the journal."""

    made: Made
    fact: Fact

    def as_dict(self) -> dict[str, Any]:
        return {"made": self.made.as_dict(), "fact": facts.as_dict(self.fact)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Record:
        return cls(Made.from_dict(values["made"]), facts.from_dict(values["fact"]))


def code(folders: Iterable[Path] = MEASURED) -> str:
    found = sorted(path for folder in folders for path in folder.rglob("*.py"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in found)).hexdigest()[:16]
