"""Means over the seeds, how far off they may be, and the one number that matters: how many labels it takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks.labels.rules import MARGIN, RANDOM, RULES, Rule
from benchmarks.labels.run import Run
from benchmarks.labels.settings import Settings
from benchmarks.subsets.summary import Mean

Floats = NDArray[np.float64]
WEIGHTED, HELPED = "the labels, weighted", "weighted, with the model's help"
PLAIN, HOLD_OUT, MARGINS = "the same, unweighted", "a random hold-out of that size", "margin's labels"


@dataclass(frozen=True)
class Ratio:
    """Labels needed for what random reaches with its last batch, as a part of what random needed. None: not reached.
    The error is a jackknife's over the seeds, NaN where it is not reached without one of them."""

    value: float | None
    error: float

    def text(self) -> str:
        if self.value is None:
            return "not reached"
        return f"{self.value:.2f} ± " + ("?" if math.isnan(self.error) else f"{self.error:.2f}")


@dataclass(frozen=True)
class Against:
    """How much better a rule is than another with the same seed sets: points of accuracy, mean over all rounds after
    the seed, and the chance of such a difference between equals (paired t-test)."""

    points: Mean
    p: float


class Summary:
    """All runs on one pool of one data set."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self.data, self.pool = runs[0].job.data, runs[0].job.pool
        self.settings: Settings = runs[0].settings
        self.labels = np.array(self.settings.labels(), np.float64)
        self.seeds = _without_holes([(run.job.rule, run.job.seed) for run in runs])
        self.rules: list[Rule] = [rule for rule in RULES.values() if self._of(rule.name)]

    def accuracies(self, rule: str) -> Floats:
        """(seeds, numbers of labels), in per cent."""
        return 100 * np.array([run.accuracy for run in self._of(rule)])

    def accuracy(self, rule: str) -> list[Mean]:
        return [Mean.of(column) for column in self.accuracies(rule).T]

    def ratio(self, rule: str) -> Ratio:
        mine, random = self.accuracies(rule), self.accuracies(RANDOM)
        everyone = np.arange(len(self.seeds))
        without = [self._ratio(mine[everyone != one], random[everyone != one]) for one in everyone]
        value = self._ratio(mine, random)
        left = np.array([np.nan if one is None else one for one in without])
        count = len(left)
        spread = float(np.sqrt((count - 1) / count * ((left - left.mean()) ** 2).sum())) if count > 1 else math.nan
        return Ratio(value, spread)

    def _ratio(self, mine: Floats, random: Floats) -> float | None:
        if not len(mine):
            return None
        target = random.mean(axis=0)[-1]
        needed, by_random = (needed_for(target, self.labels, rule.mean(axis=0)) for rule in (mine, random))
        return None if needed is None or by_random is None else needed / by_random

    def above(self, rule: str, other: str) -> Floats:
        """Points of accuracy above the other's with the same seed set, mean over all rounds after it: (seeds,)."""
        return np.asarray((self.accuracies(rule) - self.accuracies(other))[:, 1:].mean(axis=1))

    def against(self, rule: str, other: str) -> Against:
        difference = self.above(rule, other)
        p = float(stats.ttest_1samp(difference, 0.0).pvalue) if len(difference) > 1 and difference.any() else math.nan
        return Against(Mean.of(difference), p)

    def errors(self, rule: str) -> dict[str, tuple[float, float]]:
        """By where the figure comes from: the typical error (root mean square, in points) of the accuracy on what is
        left, and the mean distance of the class balance, over all rounds and seeds. Margin's labels stand for those
        of a rule that keeps no chances."""
        said = [one for run in self._of(rule) for one in run.said]
        margin = [one for run in self._of(MARGIN) for one in run.said]
        found = {
            WEIGHTED: (
                _typical([one.weighted - one.truth for one in said if one.weighted is not None]),
                _average([one.weighted_balance for one in said if one.weighted_balance is not None]),
            ),
            HELPED: (
                _typical([one.assisted - one.truth for one in said if one.assisted is not None]),
                _average([one.assisted_balance for one in said if one.assisted_balance is not None]),
            ),
            PLAIN: (
                _typical([one.plain - one.truth for one in said]),
                _average([one.plain_balance for one in said]),
            ),
            HOLD_OUT: (
                _typical([one.hold_out - one.truth for one in said]),
                _average([one.hold_out_balance for one in said]),
            ),
        }
        if margin:
            found[MARGINS] = (
                _typical([one.plain - one.truth for one in margin]),
                _average([one.plain_balance for one in margin]),
            )
        return found

    def _of(self, rule: str) -> list[Run]:
        """In the order of the seeds; none where the rule has not run with all of them."""
        found = {run.job.seed: run for run in self.runs if run.job.rule == rule}
        return [found[seed] for seed in self.seeds] if found.keys() >= set(self.seeds) else []


def _without_holes(ran: Sequence[tuple[str, int]]) -> list[int]:
    """The seeds of the largest table that has every rule with every seed: a comparison that was stopped has run some
    rules with fewer."""
    rules = {rule: {seed for of, seed in ran if of == rule} for rule, _ in ran}
    every = sorted({seed for _, seed in ran})
    tables = [every[:count] for count in range(1, len(every) + 1)]
    return max(tables, key=lambda seeds: (len(seeds) * sum(has >= set(seeds) for has in rules.values()), len(seeds)))


def needed_for(target: float, labels: Floats, accuracy: Floats) -> float | None:
    """The number of labels at which the curve first reaches the target, between two points along a straight line."""
    reached = np.flatnonzero(accuracy >= target)
    if not reached.size:
        return None
    place = int(reached[0])
    if place == 0:
        return float(labels[0])
    low, high = accuracy[place - 1], accuracy[place]
    return float(labels[place - 1] + (target - low) / (high - low) * (labels[place] - labels[place - 1]))


def by_pool(runs: Sequence[Run], order: Callable[[tuple[str, str]], object]) -> list[Summary]:
    pools = sorted({(run.job.data, run.job.pool) for run in runs}, key=order)  # type: ignore[arg-type, return-value]
    return [Summary([run for run in runs if (run.job.data, run.job.pool) == pool]) for pool in pools]


def mean_above(summaries: Sequence[Summary], rule: str, other: str) -> Mean:
    """Points of accuracy above the other's, the mean over pools. Those of one data set are compared seed by seed, for
    what one seed does on them is alike; data sets know nothing of each other."""
    value, variance = 0.0, 0.0
    for data in dict.fromkeys(summary.data for summary in summaries):
        above = [summary.above(rule, other) for summary in summaries if summary.data == data]
        seeds = min(map(len, above))
        of_data, share = Mean.of(np.mean([one[:seeds] for one in above], axis=0)), len(above) / len(summaries)
        value, variance = value + share * of_data.value, variance + (share * of_data.error) ** 2
    return Mean(value, math.sqrt(variance))


def _typical(errors: Sequence[float]) -> float:
    return 100 * float(np.sqrt(np.mean(np.square(errors)))) if len(errors) else math.nan


def _average(distances: Sequence[float]) -> float:
    return 100 * float(np.mean(distances)) if len(distances) else math.nan
