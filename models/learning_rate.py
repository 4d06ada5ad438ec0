"""Chooses the learning rate on the seed set, as the paper does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from torch import nn

from models.calibration import OverFolds, stratified_folds
from models.device import Compute
from models.feed import picked
from models.learner import Diverged, Examples, OnProgress, unheard
from models.recipe import RATES, Recipe
from models.training import logits, seeded, train

FOLDS = 3


@dataclass(frozen=True)
class Choice:
    """The rate that did best on examples not learned from, and what each came to."""

    rate: float
    accuracy: float
    accuracies: dict[float, float]


def choose_rate(
    make: Callable[[], nn.Module],
    examples: Examples,
    recipe: Recipe,
    *,
    seed: int,
    compute: Compute,
    rates: Sequence[float] = RATES,
    on_progress: OnProgress = unheard,
) -> Choice:
    """The rate with the highest weighted accuracy on examples left out in turn; of equal ones, the lower loss there.

    Each of three folds, alike in their classes, is answered for by a new module trained on the other two. A rate with
    which any of them diverges counts as never right. A single example cannot be left out, so it gets the lowest rate.
    The same seed gives the same choice.
    """
    if len(examples) < 2:
        return Choice(min(rates), 0.0, dict.fromkeys(sorted(rates), 0.0))
    folds = stratified_folds(examples.labels, FOLDS, seed=seed)
    progress = OverFolds(on_progress, len(folds) * len(rates))
    results = {}
    for rate in sorted(rates):
        try:
            answers = _answers_for_folds(
                make, examples, replace(recipe, learning_rate=rate), folds, seed, compute, progress
            )
            results[rate] = _accuracy_and_loss(answers, examples)
        except Diverged:
            results[rate] = 0.0, np.inf
    best = min(results, key=lambda rate: (-results[rate][0], results[rate][1]))
    return Choice(best, results[best][0], {rate: accuracy for rate, (accuracy, _) in results.items()})


def _answers_for_folds(
    make: Callable[[], nn.Module],
    examples: Examples,
    recipe: Recipe,
    folds: list[NDArray[np.int64]],
    seed: int,
    compute: Compute,
    progress: OverFolds,
) -> NDArray[np.float64]:
    """The logits of each example by a module that has not seen it: (n, classes)."""
    answers = np.empty((len(examples), examples.classes))
    for fold in folds:
        with seeded(seed, compute.device):
            module = make()
        others = picked(examples, np.setdiff1d(np.arange(len(examples)), fold))
        train(module, others, recipe, seed=seed, compute=compute, on_progress=progress.epoch)
        progress.fold_done()
        answers[fold] = logits(module, picked(examples, fold).rows, compute=compute)
    return answers


def _accuracy_and_loss(answers: NDArray[np.float64], examples: Examples) -> tuple[float, float]:
    losses = np.logaddexp.reduce(answers, axis=1) - answers[np.arange(len(examples)), examples.labels]
    right = answers.argmax(axis=1) == examples.labels
    weights = examples.weights.astype(np.float64)
    if not np.isfinite(losses).all():
        raise Diverged("training diverged: the loss on what was left out is not finite")
    return float(np.average(right, weights=weights)), float(np.average(losses, weights=weights))
