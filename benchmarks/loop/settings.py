"""How much of everything a run has."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    rounds: int = 5
    """Of the loop that is timed."""
    k: int = 50
    """Labels between two trainings, and of the seed."""
    pool: int = 4_000
    """Digits to label, in each project."""
    labels: int = 500
    """Given beside trainings."""
    annotators: int = 8
    look: float = 2.0
    """Seconds that an annotator looks at each picture. Without them, eight scripts would ask as much of Label Studio as
    fifty people do, and everything measured would be its own queue."""
    repeats: int = 3
    """Of the bare work."""
    minutes: float = 6.0
    """At most for the labels beside each server; then it is told how many there were."""
    ways: tuple[str, ...] = ("every-k", "every-label")
    """In which the official server trains."""


QUICK = Settings(rounds=1, k=6, pool=40, labels=12, annotators=2, look=0.0, repeats=1, minutes=0.3, ways=("every-k",))
