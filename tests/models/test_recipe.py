"""A recipe goes through JSON unchanged, says what is wrong with it and does what it is for."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from torch import nn

from models.device import Compute
from models.learner import Examples
from models.recipe import DEFAULT, FINE_TUNE, HEAD, PAPER, RATES, Recipe, RecipeError
from models.training import logits, seeded, train


@pytest.mark.parametrize("recipe", [DEFAULT, PAPER, HEAD, FINE_TUNE], ids=["default", "paper", "head", "fine-tune"])
def test_every_recipe_goes_through_json_unchanged(recipe: Recipe) -> None:
    assert Recipe.from_dict(json.loads(json.dumps(recipe.as_dict()))) == recipe


def test_settings_that_are_not_given_are_those_of_the_default() -> None:
    assert Recipe.from_dict({}) == DEFAULT
    assert Recipe.from_dict({"batch": 8}) == replace(DEFAULT, batch=8)


def test_the_paper_is_followed_to_the_letter() -> None:
    assert RATES == (0.001, 0.002, 0.005, 0.01, 0.1)
    assert (PAPER.optimiser, PAPER.batch, PAPER.schedule) == ("sgd", 100, "constant")
    assert PAPER.learning_rate is None, "chosen on the seed set"
    assert not PAPER.augment
    assert not PAPER.balance


def test_a_pre_trained_network_keeps_its_norms_and_a_head_gets_no_shifted_features() -> None:
    assert FINE_TUNE.freeze_norms
    assert not HEAD.augment


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("optimiser", "adam", "optimiser must be 'adamw' or 'sgd', not 'adam'"),
        ("learning_rate", 0, "learning_rate must be a number above 0, or null to choose it on the seed set, not 0"),
        ("learning_rate", "0.1", "learning_rate must be a number above 0"),
        ("learning_rate", float("nan"), "learning_rate must be"),
        ("momentum", 1.0, "momentum must be a number from 0 to below 1, not 1.0"),
        ("weight_decay", -0.1, "weight_decay must be a number of at least 0"),
        ("batch", 0, "batch must be a whole number above 0, not 0"),
        ("batch", 32.0, "batch must be a whole number above 0, not 32.0"),
        ("batch", True, "batch must be a whole number above 0, not True"),
        ("schedule", "step", "schedule must be 'constant' or 'cosine'"),
        ("epochs_at_most", None, "epochs_at_most must be a whole number"),
        ("low_enough", float("inf"), "low_enough must be a loss of at least 0"),
        ("patience", -1, "patience must be"),
        ("augment", "yes", "augment must be true or false, not 'yes'"),
        ("balance", 1, "balance must be true or false, not 1"),
        ("freeze_norms", None, "freeze_norms must be true or false"),
        ("threads", 0, "threads must be a whole number above 0, or null, not 0"),
        ("optimiser", ["adamw"], "optimiser must be"),
        ("epochs", 5, "unknown setting 'epochs': a recipe has optimiser, learning_rate"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(field: str, value: Any, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        Recipe.from_dict({field: value})


@pytest.mark.parametrize("content", [None, "adamw", [1]])
def test_what_is_no_recipe_at_all_is_said(content: Any) -> None:
    with pytest.raises(RecipeError, match="a recipe must be settings by name"):
        Recipe.from_dict(content)


def test_a_cosine_falls_from_the_whole_rate_to_almost_nothing() -> None:
    cosine = replace(DEFAULT, schedule="cosine")
    shares = [cosine.rate_share(epoch, 10) for epoch in range(1, 11)]
    assert shares[0] == 1.0
    assert shares[5] == pytest.approx(0.5)
    assert shares == sorted(shares, reverse=True)
    assert 0 < shares[-1] < 0.03
    assert {DEFAULT.rate_share(epoch, 10) for epoch in range(1, 11)} == {1.0}


def test_a_recipe_needs_no_torch() -> None:
    program = "import sys, models.recipe; assert not {'torch', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_linear_head_gets_as_far_as_a_tuned_logistic_regression() -> None:
    rows, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    rows, labels = rows[order].astype(np.float32), labels[order].astype(np.int64)
    mean, spread = rows[:300].mean(axis=0), rows[:300].std(axis=0).clip(0.5)
    rows = (rows - mean) / spread
    best = max(
        LogisticRegression(C=c, max_iter=500).fit(rows[:300], labels[:300]).score(rows[300:], labels[300:])
        for c in (0.01, 0.1, 1.0, 10.0)
    )

    compute = Compute(torch.device("cpu"))
    with seeded(0, compute.device):
        head = nn.Linear(64, 10)
    examples = Examples(rows[:300], labels[:300], np.ones(300, dtype=np.float32), 10)
    train(head, examples, HEAD, seed=0, compute=compute)
    accuracy = (logits(head, rows[300:], compute=compute).argmax(axis=1) == labels[300:]).mean()

    assert best > 0.9
    assert accuracy > best - 0.015
