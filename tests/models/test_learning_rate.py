"""The learning rate is the one that does best on examples that were left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from models.device import Compute
from models.learner import Examples
from models.learning_rate import Choice, choose_rate
from models.recipe import PAPER, RATES, Recipe

CPU = Compute(torch.device("cpu"))
QUICK = replace(PAPER, epochs_at_most=15, threads=1)


def clouds(count: int, *, seed: int = 0) -> Examples:
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    rows = (np.eye(6)[labels] + 0.5 * rng.normal(size=(count, 6))).astype(np.float32)
    return Examples(rows, labels, np.ones(count, dtype=np.float32), 3)


def head() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))


def choice(examples: Examples, recipe: Recipe = QUICK, *, rates: tuple[float, ...] = RATES, seed: int = 1) -> Choice:
    return choose_rate(head, examples, recipe, seed=seed, compute=CPU, rates=rates)


def test_a_rate_that_learns_is_chosen_over_those_too_slow_and_too_fast() -> None:
    chosen = choice(clouds(60), rates=(1e-7, 0.1, 1e15))
    assert chosen.rate == 0.1
    assert chosen.accuracy == chosen.accuracies[0.1] > 0.7
    assert chosen.accuracies[1e-7] < 0.6


def test_a_rate_that_diverges_counts_as_never_right() -> None:
    chosen = choice(clouds(30), rates=(0.01, 1e30))
    assert chosen.rate == 0.01
    assert chosen.accuracies[1e30] == 0.0


def test_equal_accuracies_are_settled_by_the_loss() -> None:
    easy = clouds(30)
    easy = replace(easy, rows=(10 * np.eye(6)[easy.labels]).astype(np.float32))
    chosen = choice(easy, rates=(0.01, 0.02))
    assert chosen.accuracies == {0.01: 1.0, 0.02: 1.0}
    assert chosen.rate == 0.02


def test_the_papers_rates_are_the_ones_compared() -> None:
    assert tuple(choice(clouds(30)).accuracies) == RATES


def test_the_same_seed_gives_the_same_choice_and_leaves_the_random_state_alone() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = choice(clouds(45))
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert choice(clouds(45)) == first


def test_accuracy_is_weighted() -> None:
    """Two rows alike with different labels: only the heavier one can be right."""
    rows = np.tile(np.eye(6, dtype=np.float32)[:1], (12, 1))
    labels = np.array([0, 1] * 6)
    heavy = np.where(labels == 1, 9, 1).astype(np.float32)
    assert choice(Examples(rows, labels, heavy, 3), rates=(0.1,)).accuracy == pytest.approx(0.9)


@pytest.mark.parametrize("count", [1, 2])
def test_it_makes_do_with_hardly_any_example(count: int) -> None:
    chosen = choice(clouds(count))
    assert chosen.rate in RATES
    assert 0 <= chosen.accuracy <= 1


def test_a_single_example_gets_the_lowest_rate() -> None:
    assert choice(clouds(1)).rate == 0.001
