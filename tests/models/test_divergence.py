"""A model that does far worse on the seed set than the first one did is not used."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.divergence import collapsed


def test_a_model_that_fell_to_chance_has_collapsed() -> None:
    assert collapsed(49, 50, 5, 50) == (
        "on the seed set 5 of 50 are right, where the first model had 49 of 50: "
        "0.85 lower, and 3 standard errors are 0.16"
    )


def test_a_few_more_mistakes_are_no_collapse() -> None:
    assert collapsed(49, 50, 44, 50) is None


def test_perfect_scores_on_few_examples_prove_little() -> None:
    assert collapsed(2, 2, 0, 2) is None
    assert collapsed(50, 50, 0, 50) is not None


def test_without_a_seed_set_nothing_can_be_said() -> None:
    assert collapsed(0, 0, 0, 0) is None


@given(st.integers(0, 200), st.data())
def test_a_model_that_is_no_worse_has_never_collapsed(count: int, data: st.DataObject) -> None:
    before = data.draw(st.integers(0, count))
    assert collapsed(before, count, data.draw(st.integers(before, count)), count) is None


@pytest.mark.parametrize("accuracy", [0.5, 0.9, 0.98])
def test_two_equally_good_models_are_hardly_ever_told_apart(accuracy: float) -> None:
    draws = np.random.default_rng(0).binomial(50, accuracy, size=(2000, 2))
    assert np.mean([collapsed(int(a), 50, int(b), 50) is not None for a, b in draws]) < 0.005


@pytest.mark.parametrize("counts", [(3, 2, 1, 2), (1, 2, 3, 2), (-1, 2, 1, 2)])
def test_counts_that_cannot_be_are_an_error(counts: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="cannot be right"):
        collapsed(*counts)
