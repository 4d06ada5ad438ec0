"""What only many draws can show: chances are what they claim, estimates are unbiased, intervals cover the truth."""

import copy
from collections.abc import Callable

import numpy as np
import pytest

from iwes import draw, estimate_mean, estimate_within
from iwes.chance import Chance, inclusion
from iwes.draw import child_rng
from iwes.order import RandomOrder

# pool, batch, mean score, accuracy, how errors follow scores, most passes over the pool
SETUPS = [
    (2_000, 100, 0.10, 0.90, "half", 1),
    (2_000, 1_000, 0.10, 0.80, "half", 9),
    (5_000, 1_000, 0.05, 0.90, "proportional", 4),
    (5_000, 500, 0.20, 0.70, "half", 1),
    (10_000, 300, 0.30, 0.85, "half", 1),
    (20_000, 300, 0.05, 0.97, "half", 1),
    (60_000, 1_000, 0.05, 0.90, "proportional", 1),
]


@pytest.mark.parametrize(("size", "k", "mean"), [(600, 60, 0.2), (600, 300, 0.1)])
def test_tasks_are_accepted_as_often_as_their_inclusion_says(
    size: int, k: int, mean: float, make_pool: Callable
) -> None:
    """Accepted or not, the π of every task at the end of a draw, averaged, is its frequency of acceptance."""
    score, _ = make_pool(size, mean, 0.8)
    first = Chance(floor=0.05).of(score)
    accepted, claimed = np.zeros(size), np.zeros(size)
    runs = 500
    rng = np.random.default_rng(1)
    for _ in range(runs):
        position = np.argsort(RandomOrder(size, child_rng(copy.deepcopy(rng))).take(0, size))
        result = draw(score, k, rng=rng)
        accepted[result.index] += 1
        exposures = result.passes[-1] + (position <= result.position[-1])
        claimed += inclusion(first, exposures)
    order = np.argsort(first)
    for tasks in np.array_split(order, 10):
        frequency, chance = accepted[tasks].sum() / runs, claimed[tasks].sum() / runs
        noise = np.sqrt(chance / runs)
        assert abs(frequency - chance) < 4 * noise + chance / k


@pytest.mark.parametrize(("size", "k", "mean"), [(1000, 100, 0.2), (1000, 500, 0.1), (4000, 100, 0.05)])
@pytest.mark.parametrize("scaling", ["stream", "pool"])
def test_inverse_inclusions_count_the_tasks_examined(
    size: int, k: int, mean: float, scaling: str, make_pool: Callable
) -> None:
    """Σ1/π is unbiased for the pool's size after a whole pass, and for the number examined within the first."""
    score, _ = make_pool(size, mean, 0.8)
    rng = np.random.default_rng(2)
    off = []
    for _ in range(300):
        result = draw(score, k, rng=rng, scaling=scaling)
        off.append((1 / result.inclusion).sum() - result.examined)
    assert abs(np.mean(off)) < 4 * np.std(off) / np.sqrt(len(off)) + size / k


@pytest.mark.slow
@pytest.mark.parametrize(("size", "k", "mean", "accuracy", "link", "passes"), SETUPS)
def test_intervals_cover_the_truth_and_capped_weights_do_not(
    size: int, k: int, mean: float, accuracy: float, link: str, passes: int, make_pool: Callable
) -> None:
    score, right = make_pool(size, mean, accuracy, link)
    truth = right.mean()
    rng = np.random.default_rng(3)
    runs = 1000
    hits = capped_hits = 0
    for _ in range(runs):
        result = draw(score, k, rng=rng)
        v = right[result.index]
        honest = estimate_mean(v, result.inclusion, examined=result.examined, pool_size=size)
        capped = estimate_mean(v, 1 / result.weight, examined=result.examined, pool_size=size)
        hits += honest.low <= truth <= honest.high
        capped_hits += capped.low <= truth <= capped.high
        assert result.passes.max() < passes
    print(
        f"\npool {size} batch {k} mean score {mean}: covered {hits / runs:.1%}, capped weights {capped_hits / runs:.1%}"
    )
    assert 0.93 <= hits / runs <= 0.97
    assert capped_hits / runs < 0.35


@pytest.mark.slow
@pytest.mark.parametrize(("size", "k", "mean"), [(2_000, 100, 0.1), (2_000, 1_000, 0.3), (10_000, 300, 0.05)])
@pytest.mark.parametrize("accuracy", [0.98, 0.02])
def test_intervals_near_the_edge_cover_at_least_as_often_as_promised(
    size: int, k: int, mean: float, accuracy: float, make_pool: Callable
) -> None:
    """Where one answer is rare the interval errs on the safe side, from either side."""
    score, right = make_pool(size, mean, max(accuracy, 1 - accuracy))
    value = right if accuracy > 0.5 else 1 - right
    rng = np.random.default_rng(4)
    hits = 0
    for _ in range(600):
        result = draw(score, k, rng=rng)
        e = estimate_mean(value[result.index], result.inclusion, examined=result.examined, pool_size=size)
        hits += e.low <= value.mean() <= e.high
    print(f"\npool {size} batch {k} mean score {mean} truth {value.mean():.3f}: covered {hits / 600:.1%}")
    assert hits / 600 >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "k", "mean", "accuracy", "options"),
    [
        (2_000, 100, 0.1, 0.90, {"scaling": "pool"}),
        (2_000, 1_000, 0.1, 0.80, {"scaling": "pool"}),
        (10_000, 300, 0.3, 0.85, {"scaling": "pool", "sharpness": 2.0}),
        (5_000, 300, 0.3, 0.80, {"sharpness": 2.0}),
        (5_000, 500, 0.2, 0.70, {"reserve": 0.5}),
        (2_000, 50, 0.2, 0.90, {"floor": 0.02}),
    ],
)
def test_intervals_cover_the_truth_whatever_the_options(
    size: int, k: int, mean: float, accuracy: float, options: dict, make_pool: Callable
) -> None:
    score, right = make_pool(size, mean, accuracy)
    rng = np.random.default_rng(6)
    hits = 0
    for _ in range(600):
        result = draw(score, k, rng=rng, **options)
        batch = slice(0, result.batch_size)
        e = estimate_mean(right[result.index[batch]], result.inclusion[batch], examined=result.examined, pool_size=size)
        hits += e.low <= right.mean() <= e.high
    print(f"\npool {size} batch {k} mean score {mean} {options}: covered {hits / 600:.1%}")
    assert 0.93 <= hits / 600 <= 0.98


@pytest.mark.slow
@pytest.mark.parametrize(("size", "k", "mean"), [(2_000, 200, 0.3), (5_000, 500, 0.2), (20_000, 500, 0.1)])
@pytest.mark.parametrize("share", [0.1, 0.4])
def test_intervals_within_a_part_of_the_pool_cover_the_truth(
    size: int, k: int, mean: float, share: float, make_pool: Callable
) -> None:
    """As for the recall of a class: how many labels fall into the part is up to chance."""
    score, right = make_pool(size, mean, 0.8)
    within = np.random.default_rng(8).random(size) < share
    truth = right[within].mean()
    rng = np.random.default_rng(7)
    hits = 0
    for _ in range(600):
        result = draw(score, k, rng=rng)
        v, d = right[result.index], within[result.index]
        e = estimate_within(v, d, result.inclusion, examined=result.examined, pool_size=size)
        hits += e.low <= truth <= e.high
    print(f"\npool {size} batch {k} mean score {mean} part {share}: covered {hits / 600:.1%}")
    assert 0.93 <= hits / 600 <= 0.985
