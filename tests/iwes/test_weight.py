"""Weights: cap, normalisations, effective size, and the share that says nothing."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iwes import BadArgument, effective_size, loss, normalise, share_capped, training_weight

weights = st.lists(st.floats(0.01, 100), min_size=1, max_size=50).map(np.array)


def test_weight_by_hand() -> None:
    assert training_weight([1.0, 0.8, 0.5, 0.1]).tolist() == [1.0, 1.25, 2.0, 2.0]
    assert training_weight([0.1], cap=math.inf).tolist() == [10.0]
    assert share_capped([1.0, 0.8, 0.5, 0.1]) == 0.25
    assert share_capped([]) == 0.0


def test_every_weight_of_iwes_loss_is_capped_at_the_papers_cap() -> None:
    p = np.linspace(0.001, 0.999, 1000)
    score = loss(np.column_stack([p, 1 - p]), np.zeros(1000, int))
    assert share_capped(score, cap=2.0) == 1.0
    assert share_capped(score, cap=2.7) == 1.0
    assert share_capped(score, cap=2.8) < 1.0


@given(weights)
def test_normalisations_keep_ratios(w: np.ndarray) -> None:
    assert normalise(w).mean() == pytest.approx(1.0)
    assert normalise(w, to="sum", total=12_345).sum() == pytest.approx(12_345)
    np.testing.assert_allclose(normalise(w) / normalise(w)[0], w / w[0])


@given(weights, st.floats(0.01, 100))
def test_effective_size_is_between_one_and_n_and_has_no_unit(w: np.ndarray, unit: float) -> None:
    size = effective_size(w)
    assert 1.0 - 1e-9 <= size <= len(w) + 1e-9
    assert effective_size(unit * w) == pytest.approx(size)
    assert effective_size(np.full(len(w), 3.0)) == pytest.approx(len(w))


def test_effective_size_by_hand() -> None:
    assert effective_size([1, 1, 2]) == pytest.approx(16 / 6)
    assert effective_size([1, 0, 0]) == 1.0
    assert effective_size([]) == effective_size([0.0]) == 0.0


def test_bad_weight_is_named() -> None:
    with pytest.raises(BadArgument, match=r"weight\[1\] is nan"):
        effective_size([1.0, math.nan])
    with pytest.raises(BadArgument, match=r"probability\[2\] is 0.0"):
        training_weight([0.5, 1.0, 0.0])
    with pytest.raises(BadArgument, match="total None"):
        normalise([1.0], to="sum")
    with pytest.raises(BadArgument, match="sums to 0"):
        normalise([0.0, 0.0])
