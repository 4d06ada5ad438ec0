"""The lazy random order: a permutation, the same however it is read, and uniform."""

import itertools

import numpy as np
import pytest
from scipy.stats import chisquare

from iwes import order as order_module
from iwes.order import RandomOrder


@pytest.mark.parametrize("n", [1, 2, 100, 8191, 8192, 8193, 50_000])
def test_every_task_comes_once(n: int) -> None:
    order = RandomOrder(n, np.random.default_rng(0)).take(0, n)
    assert np.array_equal(np.sort(order), np.arange(n))


@pytest.mark.parametrize("step", [1, 100, 4096, 50_000])
def test_order_is_the_same_however_it_is_read(step: int) -> None:
    n = 30_000
    whole = RandomOrder(n, np.random.default_rng(5)).take(0, n)
    reader = RandomOrder(n, np.random.default_rng(5))
    stop = n if step > 50 else 300
    parts = np.concatenate([reader.take(start, start + step) for start in range(0, stop, step)])
    np.testing.assert_array_equal(parts, whole[: len(parts)])


def test_all_orders_are_equally_likely(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a first step of 1, five tasks go through both ways of extending the order."""
    monkeypatch.setattr(order_module, "FIRST", 1)
    count = dict.fromkeys(itertools.permutations(range(5)), 0)
    rng = np.random.default_rng(1)
    for _ in range(4_000):
        count[tuple(RandomOrder(5, rng).take(0, 5).tolist())] += 1
    assert chisquare(list(count.values())).pvalue > 0.001


def test_a_task_is_as_likely_early_as_late() -> None:
    rng = np.random.default_rng(2)
    place = [int(np.flatnonzero(RandomOrder(20_000, rng).take(0, 20_000) == 7)[0]) for _ in range(300)]
    assert chisquare(np.histogram(place, bins=10, range=(0, 20_000))[0]).pvalue > 0.001
