"""From score to probability, and from the coins of all passes to the chance of being drawn at all."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iwes.chance import Chance, inclusion, pool_factor

scores = st.lists(st.just(0.0) | st.floats(1e-9, 1), min_size=1, max_size=40).map(np.array)


def test_floor_comes_after_sharpness_and_before_the_factor() -> None:
    score = np.array([0.0, 0.1, 0.5, 1.0])
    np.testing.assert_allclose(Chance(floor=0.0).of(score), score)
    np.testing.assert_allclose(Chance(floor=0.05, sharpness=2.0).of(score), [0.05, 0.05, 0.25, 1.0])
    np.testing.assert_allclose(Chance(floor=0.2, factor=0.5).of(score), [0.1, 0.1, 0.25, 0.5])
    np.testing.assert_allclose(Chance(floor=0.2, factor=3.0).of(score), [0.6, 0.6, 1.0, 1.0])


@given(scores, st.integers(1, 30))
def test_pool_factor_makes_the_probabilities_sum_to_k(score: np.ndarray, k: int) -> None:
    factor = pool_factor(score, k)
    positive = int(np.count_nonzero(score))
    if positive <= k:
        assert factor == math.inf
    else:
        assert np.minimum(1.0, factor * score).sum() == pytest.approx(k)


@given(scores, st.floats(0.01, 100))
def test_pool_scaled_probabilities_do_not_depend_on_the_unit_of_the_score(score: np.ndarray, unit: float) -> None:
    k = max(1, len(score) // 2)
    one = Chance(floor=0.0, scaling="pool").scaled_to(score, k).of(score)
    other = Chance(floor=0.0, scaling="pool").scaled_to(unit * score, k).of(unit * score)
    np.testing.assert_allclose(one, other, rtol=1e-9)


def test_inclusion_by_hand() -> None:
    assert inclusion([0.3], [1]).tolist() == [0.3]
    assert inclusion([0.3], [2])[0] == pytest.approx(1 - 0.7 * (1 - 0.33))
    assert inclusion([0.3], [3])[0] == pytest.approx(1 - 0.7 * (1 - 0.33) * (1 - 0.36))
    assert inclusion([0.95], [2]).tolist() == [1.0]
    assert inclusion([0.0, 0.5, 1.0], [9, 0, 1]).tolist() == [0.0, 0.0, 1.0]


def test_inclusion_keeps_tiny_probabilities() -> None:
    assert inclusion([1e-12], [2])[0] == pytest.approx(2.1e-12, rel=1e-12)


@given(scores, st.integers(0, 30))
def test_more_coins_and_higher_probabilities_never_lower_the_inclusion(p: np.ndarray, exposures: int) -> None:
    now, later = inclusion(p, exposures), inclusion(p, exposures + 1)
    assert np.all((now >= 0) & (now <= 1))
    assert np.all(later >= now)
    by_p = inclusion(np.sort(p), exposures)
    assert np.all(np.diff(by_p) >= -1e-15)
