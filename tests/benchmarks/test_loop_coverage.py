"""The estimates of the loop hold what they promise, on a pool whose truth is known."""

from __future__ import annotations

from pathlib import Path

import pytest
from scipy.stats import binom

from benchmarks.loop_coverage import Held, Plan, simulate, summary

RUNS, ROUNDS = 40, 3


def test_coverage_counts_the_intervals_that_hold_the_truth() -> None:
    held = [Held("accuracy", 1, 0.5, value, value - 0.1, value + 0.1) for value in (0.45, 0.55, 0.7, 0.5)]
    one, every = summary([held[:2], held[2:]])
    assert (one.round, every.round, one.intervals) == (1, None, 4)
    assert (one.covered, every.half_width) == (0.75, pytest.approx(0.1))
    assert one.bias == pytest.approx(0.05)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_intervals_of_the_whole_loop_cover_the_truth(tmp_path: Path) -> None:
    """Each run has one accuracy per round, so their number covered is binomial; the ten class shares of a round hang
    together, so they get the band of the runs alone. Above the nominal there is room: intervals are on the safe side
    where errors are rare."""
    found = summary(list(simulate(Plan(rounds=ROUNDS), range(1, RUNS + 1), tmp_path)))
    by_quantity = {one.quantity: one for one in found if one.round is None}
    least = binom.ppf(0.001, RUNS * ROUNDS, 0.95) / (RUNS * ROUNDS)
    accuracy, balance = by_quantity["accuracy on the rest"], by_quantity["class balance"]
    print(f"\naccuracy {accuracy.covered:.1%}, class balance {balance.covered:.1%}, at least {least:.1%}")
    assert accuracy.intervals == RUNS * ROUNDS
    assert accuracy.covered >= least
    assert abs(balance.covered - 0.95) <= 0.95 - least
    assert abs(accuracy.bias) < 3 * accuracy.rms / (RUNS * ROUNDS) ** 0.5
    assert by_quantity["recall of a class"].covered >= 0.93
