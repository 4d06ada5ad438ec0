"""Means over the seeds, and how far off they may be."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.subsets.rules import FULL, RANDOM, RULES
from benchmarks.subsets.run import Run
from benchmarks.subsets.settings import Settings


@dataclass(frozen=True)
class Mean:
    """A mean over seeds with its standard error, NaN where there is one seed only."""

    value: float
    error: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Mean:
        found = np.array(list(values))
        error = found.std(ddof=1) / math.sqrt(len(found)) if len(found) > 1 else math.nan
        return cls(float(found.mean()), float(error))

    def text(self, style: str = ".2f") -> str:
        value = f"{self.value:{style}}".replace("-", "−")
        return value + ("" if math.isnan(self.error) else f" ± {self.error:.2f}")


class Summary:
    """All runs of one benchmark, asked by rule. Accuracies and their differences are in per cent."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self.settings: Settings = runs[0].settings
        self.labels = self.settings.labels()
        self.seeds = sorted({run.seed for run in runs})
        self.rules = [rule for rule in RULES.values() if rule.name != FULL]

    def of(self, rule: str) -> list[Run]:
        """In the order of the seeds."""
        return sorted((run for run in self.runs if run.rule == rule), key=lambda run: run.seed)

    def accuracies(self, rule: str) -> NDArray[np.float64]:
        """(seeds, points of the curve)"""
        found = [[100 * point.accuracy for point in run.points] for run in self.of(rule)]
        return np.array(found, np.float64)

    def accuracy(self, rule: str) -> list[Mean]:
        """At each number of labels; a single one for the full set."""
        return [Mean.of(column) for column in self.accuracies(rule).T]

    def over_random(self, rule: str) -> list[Mean]:
        """By how much it is better than random with the same seed set, at each number of labels."""
        return [Mean.of(column) for column in self._difference(rule).T]

    def over_random_in_all_rounds(self, rule: str) -> Mean:
        """The same for the mean of all points after the seed set, which is the same for all."""
        return Mean.of(self._difference(rule)[:, 1:].mean(axis=1))

    def seeds_better(self, rule: str) -> int:
        return int((self._difference(rule)[:, -1] > 0).sum())

    def _difference(self, rule: str) -> NDArray[np.float64]:
        return self.accuracies(rule) - self.accuracies(RANDOM)
