"""How long annotators waited for each label: for a task to look at, and for their answer to be taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SHARES = {"p50": 0.5, "p99": 0.99, "max": 1.0}


@dataclass(frozen=True)
class Wait:
    """Seconds of one label. Requests that were refused and done again count, and so does the time without any task."""

    next: float
    submit: float

    @property
    def both(self) -> float:
        return self.next + self.submit


KINDS = {"submit": "submit", "next": "next task", "both": "together"}


def seconds(waits: Sequence[Wait], kind: str) -> list[float]:
    return [getattr(wait, kind) for wait in waits]


def at_share(values: Sequence[float], share: float) -> float:
    """What this share of the values does not exceed; NaN where there are none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")
