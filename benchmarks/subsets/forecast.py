"""How long the rest will take, from what the finished runs took."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from benchmarks.subsets.run import Job, Run


def seconds_left(todo: Sequence[Job], finished: Sequence[Run], workers: int) -> float:
    """Each run takes as long as those of its rule took; one of a rule that has not ended yet, as the longest so far."""
    taken: dict[str, list[float]] = {}
    for run in finished:
        taken.setdefault(run.rule, []).append(run.seconds)
    longest = max((run.seconds for run in finished), default=0.0)
    return sum(mean(taken.get(job.rule, [longest])) for job in todo) / workers


def in_words(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
