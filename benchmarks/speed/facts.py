"""What is found out, one fact at a time."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Times:
    """Processor seconds of the same question put to us and to a peer."""

    rows: int
    task: str
    peer: str
    ours: float
    theirs: float
    picks: int  # that the peer made; where they are fewer than k, its time is extrapolated
    wanted: float | None = None  # times faster
    compared: int = 0  # picks
    same: bool | None = None  # whether these were the same; None where they need not be

    @property
    def name(self) -> str:
        return f"{self.rows:,} rows: {self.task} beside {self.peer}"

    @property
    def faster(self) -> float:
        return self.theirs / self.ours

    @property
    def short(self) -> bool:
        """Of what is wanted."""
        return self.wanted is not None and self.faster < self.wanted


@dataclass(frozen=True)
class Memory:
    """The most that a draw holds at a time on top of what was there before."""

    rows: int
    task: str
    arrays: float  # in arrays of one score a row, that of the scores itself included
    wanted: float = 2.0  # to be below

    @property
    def name(self) -> str:
        return f"{self.rows:,} rows: memory of {self.task}"


@dataclass(frozen=True)
class Draws:
    """Whether two ways of BADGE draw from the same distribution."""

    peer: str
    first: bool  # whether the first pick, which no chance decides, is the same
    pairs: int
    p: float  # of a χ² test that the pairs of later picks are distributed alike

    @property
    def name(self) -> str:
        return f"BADGE draws as {self.peer}"


Fact: TypeAlias = Times | Memory | Draws
KINDS: dict[str, type[Times] | type[Memory] | type[Draws]] = {"times": Times, "memory": Memory, "draws": Draws}


def as_dict(fact: Fact) -> dict[str, Any]:
    kind = next(name for name, kind in KINDS.items() if isinstance(fact, kind))
    return {"kind": kind, **asdict(fact)}


def from_dict(values: dict[str, Any]) -> Fact:
    given = dict(values)
    return KINDS[given.pop("kind")](**given)
