"""Estimates: by hand, at the edges, and combined with what is known."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student

from iwes import (
    BadArgument,
    BadInclusion,
    BadLabels,
    class_balance,
    combine,
    draw,
    draw_seed,
    estimate_mean,
    estimate_within,
    with_known,
)
from iwes.interval import student_quantile, wilson

chances = st.lists(st.tuples(st.booleans(), st.floats(0.05, 1)), min_size=2, max_size=60)


def test_hajek_mean_by_hand() -> None:
    result = estimate_mean([1, 0, 1], [0.5, 0.25, 1.0])
    assert result.value == pytest.approx((2 + 1) / (2 + 4 + 1))
    assert result.effective_size == pytest.approx(49 / 21)


def test_variance_of_unbounded_values_by_hand() -> None:
    """Σ(1−π)(1/π)²(v−R)²/(Σ1/π)² with n/(n−1), plus the part for what the draw did not see."""
    v, pi = np.array([2.0, 5.0, 9.0]), np.array([0.5, 0.25, 0.5])
    w = 1 / pi
    mean = (w @ v) / w.sum()
    coins = ((1 - pi) * (w * (v - mean)) ** 2).sum() / w.sum() ** 2
    unseen = (1 / 10 - 1 / 40) * (w @ (v - mean) ** 2) / w.sum()
    assert estimate_mean(v, pi).standard_error ** 2 == pytest.approx(1.5 * coins)
    result = estimate_mean(v, pi, examined=10, pool_size=40)
    assert result.standard_error**2 == pytest.approx(1.5 * (coins + unseen))
    half = student_quantile(0.975, result.effective_size - 1) * result.standard_error
    assert (result.low, result.high) == pytest.approx((mean - half, mean + half))


def test_whole_pool_labelled_leaves_no_doubt() -> None:
    result = estimate_mean([1, 0, 1, 1], np.ones(4))
    assert (result.value, result.low, result.high) == (0.75, 0.75, 0.75)


@given(chances)
def test_interval_contains_the_value_and_stays_within_zero_and_one(labels: list[tuple[bool, float]]) -> None:
    v, pi = np.array([a for a, _ in labels], float), np.array([b for _, b in labels])
    result = estimate_mean(v, pi)
    assert 0 <= result.low <= result.value <= result.high <= 1
    wide = estimate_mean(v, pi, confidence=0.999)
    assert wide.low <= result.low + 1e-12
    assert result.high <= wide.high + 1e-12
    assert estimate_mean(v, pi, examined=100, pool_size=10_000).standard_error >= result.standard_error
    flipped = estimate_mean(1 - v, pi)
    assert (flipped.low, flipped.high) == pytest.approx((1 - result.high, 1 - result.low), abs=1e-9)


def test_all_right_still_leaves_a_doubt_that_shrinks_with_the_labels() -> None:
    widths = []
    for n in (10, 100, 1000):
        result = estimate_mean(np.ones(n), np.full(n, 0.01))
        assert result.high == 1.0
        widths.append(1 - result.low)
    assert widths[0] > widths[1] > widths[2] > 0
    # With weights alike and few of the pool drawn it is close to the plain Wilson interval.
    assert widths[1] == pytest.approx(1 - wilson(1.0, 100, 1.984)[0], rel=0.05)


def test_seed_draw_gives_the_textbook_interval_of_a_simple_random_sample() -> None:
    seed = draw_seed(1000, 200, rng=np.random.default_rng(0))
    v = np.arange(200) % 4 == 0
    result = estimate_mean(v, seed.inclusion, examined=seed.examined, pool_size=1000)
    assert result.value == 0.25
    assert result.standard_error == pytest.approx(math.sqrt(0.25 * 0.75 / 200 * (1 - 0.2)), rel=0.02)


def test_student_quantile_is_close_to_the_exact_one() -> None:
    for degrees in (4, 10, 50, 1000):
        assert student_quantile(0.975, degrees) == pytest.approx(student.ppf(0.975, degrees), rel=0.01)
        assert student_quantile(0.5, degrees) == pytest.approx(0.0, abs=1e-12)


def test_class_balance_sums_to_one_and_names_a_bad_label() -> None:
    rng = np.random.default_rng(1)
    balance = class_balance(rng.integers(0, 5, 300), rng.uniform(0.05, 1, 300), 5)
    assert sum(share.value for share in balance) == pytest.approx(1.0)
    assert all(share.low < share.value < share.high for share in balance)
    with pytest.raises(BadLabels, match=r"labels\[1\] is 5"):
        class_balance([0, 5], [0.5, 0.5], 5)


def test_known_part_moves_and_narrows_the_estimate() -> None:
    rest = estimate_mean([1, 0, 0, 1], [0.5, 0.25, 0.5, 0.5])
    whole = with_known(rest, remaining=60, known_sum=30, known=40)
    assert whole.value == pytest.approx((30 + 60 * rest.value) / 100)
    assert whole.low == pytest.approx((30 + 60 * rest.low) / 100)
    assert whole.high == pytest.approx((30 + 60 * rest.high) / 100)
    done = with_known(rest, remaining=0, known_sum=30, known=40)
    assert (done.low, done.value, done.high) == (0.75, 0.75, 0.75)


def test_combining_equal_rounds_shrinks_the_error_by_the_root_of_their_number() -> None:
    one = estimate_mean(np.arange(200) % 3 == 0, np.full(200, 0.1))
    four = combine([one] * 4, np.ones(4))
    assert four.value == pytest.approx(one.value)
    assert four.standard_error == pytest.approx(one.standard_error / 2)
    assert four.effective_size == pytest.approx(4 * one.effective_size)
    assert four.high - four.low == pytest.approx((one.high - one.low) / 2, rel=0.02)
    alone = combine([one], [1.0])
    assert (alone.low, alone.high) == pytest.approx((one.low, one.high), abs=2e-3)


def test_class_share_of_the_whole_pool_combined_over_rounds_covers_the_truth(make_pool: Callable) -> None:
    """Three rounds on a shrinking pool; each speaks of the whole pool: its labelled part and the rest."""
    score, value = make_pool(2000, 0.15, 0.7)
    hits = 0
    errors = []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        left = np.arange(2000)
        known_sum, known, rounds = 0.0, 0, []
        for _ in range(3):
            drawn = draw(score[left], 100, rng=rng)
            v = value[left[drawn.index]]
            rest = estimate_mean(v, drawn.inclusion, examined=drawn.examined, pool_size=len(left))
            rounds.append(with_known(rest, remaining=len(left), known_sum=known_sum, known=known))
            known_sum, known = known_sum + v.sum(), known + len(v)
            left = np.delete(left, drawn.index)
        result = combine(rounds, [100, 100, 100])
        hits += result.low <= value.mean() <= result.high
        errors.append((result.value - value.mean()) / result.standard_error)
    assert 0.92 <= hits / 400 <= 0.98
    assert abs(np.mean(errors)) < 0.2
    assert 0.85 < np.std(errors) < 1.15


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (([1.0], [0.0]), {}, BadInclusion, r"inclusion\[0\] is 0.0"),
        (([1.0, 0.0], [0.5, 1.2]), {}, BadInclusion, r"inclusion\[1\] is 1.2"),
        (([1.0, math.nan], [0.5, 0.5]), {}, BadArgument, r"values\[1\] is nan: leave out"),
        (([], []), {}, BadArgument, "1 label or more"),
        (([1.0, 0.0], [0.5]), {}, BadArgument, "shape"),
        (([1.0], [0.5]), {"examined": 5}, BadArgument, "give both"),
        (([1.0], [0.5]), {"examined": 6, "pool_size": 5}, BadArgument, "examined from 1"),
        (([1.0], [0.5]), {"confidence": 1.0}, BadArgument, "confidence is 1.0"),
    ],
)
def test_bad_input_is_named(arguments: tuple, options: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        estimate_mean(*arguments, **options)


def test_mean_within_a_part_is_a_ratio_of_two_means() -> None:
    v, within, pi = np.array([1, 0, 1, 1]), np.array([True, True, False, True]), np.array([0.5, 0.25, 0.1, 1.0])
    found = estimate_within(v, within, pi)
    above, below = estimate_mean(v * within, pi).value, estimate_mean(within, pi).value
    assert found.value == pytest.approx(above / below) == pytest.approx((2 + 1) / (2 + 4 + 1))


def test_variance_within_a_part_is_that_of_the_linearised_ratio() -> None:
    """Σ(1−π)(e/π)² and the unseen part of e = d(v − R)/share, which is what a ratio's error is to first order."""
    rng = np.random.default_rng(0)
    v, within, pi = rng.normal(2, 1, 40), rng.random(40) < 0.4, rng.uniform(0.1, 1, 40)
    w = 1 / pi
    share = w[within].sum() / w.sum()
    mean = (w * v)[within].sum() / w[within].sum()
    e = within * (v - mean) / share
    coins = ((1 - pi) * (w * e) ** 2).sum() / w.sum() ** 2
    unseen = (1 / 100 - 1 / 400) * (w @ e**2) / w.sum()
    n = within.sum()
    found = estimate_within(v, within, pi, examined=100, pool_size=400)
    assert found.standard_error**2 == pytest.approx((coins + unseen) * n / (n - 1))


def test_part_of_a_wholly_labelled_pool_is_known_exactly() -> None:
    found = estimate_within([1, 0, 1, 0], [True, True, True, False], np.ones(4), examined=4, pool_size=4)
    assert (found.low, found.value, found.high) == pytest.approx((2 / 3, 2 / 3, 2 / 3))


def test_mean_within_everything_is_the_mean() -> None:
    v, pi = [1, 0, 1, 1], [0.5, 0.25, 0.1, 1.0]
    assert estimate_within(v, [True] * 4, pi, examined=9, pool_size=20) == estimate_mean(
        v, pi, examined=9, pool_size=20
    )


@pytest.mark.parametrize("within", [[False, False], [True]])
def test_a_part_without_labels_is_refused(within: list[bool]) -> None:
    with pytest.raises(BadArgument, match="within"):
        estimate_within([1, 0], within, [0.5, 0.5])


def test_class_shares_are_the_means_of_each_class() -> None:
    rng = np.random.default_rng(1)
    label, pi = rng.integers(0, 4, 60), rng.uniform(0.05, 1, 60)
    shares = class_balance(label, pi, 4, examined=70, pool_size=300)
    alone = [estimate_mean(label == c, pi, examined=70, pool_size=300) for c in range(4)]
    for together, one in zip(shares, alone, strict=True):
        assert (together.low, together.value, together.high) == pytest.approx((one.low, one.value, one.high))
