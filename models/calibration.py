"""Makes a model's probabilities mean what they say, by one number: the temperature that its logits are divided by.

A draw is made of these probabilities, and a model that has seen its labels is too sure of them: so the temperature is
found on answers for examples that the model answering had not seen.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.feed import picked
from models.learner import Examples, Learner, OnProgress, Progress, unheard

LOWEST, HIGHEST = 0.05, 20.0
PRIOR_LABELS = 5.0
"""How many labels' worth of evidence speaks for a temperature of 1 before any label is seen."""


def calibrate(learner: Learner, examples: Examples, seed: int, on_progress: OnProgress = unheard) -> float:
    """The temperature for what this learner makes of these examples; 1 where one example alone says nothing."""
    if len(examples) < 2:
        return 1.0
    logits = out_of_fold(learner, examples, seed=seed, on_progress=on_progress)
    return temperature(logits, examples.labels, examples.weights)


def temperature(logits: NDArray[Any], labels: NDArray[np.int64], weights: NDArray[Any]) -> float:
    """T from 0.05 to 20, for which softmax(logits / T) gives these labels the highest weighted likelihood.

    The weights count by their ratios. A penalty of (ln T)² / 2 for each of PRIOR_LABELS labels keeps T near 1 where
    labels are few or all answered right, which alone would ask for a T of 0.
    """
    # relative to the highest of their row, and not below −100: where a model rules a class out altogether, −∞ would
    # make every T as bad as any other
    relative = np.maximum(logits - logits.max(axis=1, keepdims=True), -100.0).astype(np.float64)
    of_label = relative[np.arange(len(labels)), labels]
    shares = weights / weights.mean(dtype=np.float64)

    def cost(log_t: float) -> float:
        scaled = relative * np.exp(-log_t)
        losses = np.log(np.exp(scaled).sum(axis=1)) - of_label * np.exp(-log_t)
        return float((shares * losses).sum()) + PRIOR_LABELS * log_t**2 / 2

    grid = np.linspace(np.log(LOWEST), np.log(HIGHEST), 61)  # has 0 in its middle
    best = int(np.argmin([cost(point) for point in grid]))
    return float(np.exp(_lowest(cost, grid[max(best - 1, 0)], grid[min(best + 1, 60)])))


def out_of_fold(
    learner: Learner, examples: Examples, *, seed: int, folds: int = 5, on_progress: OnProgress = unheard
) -> NDArray[np.float64]:
    """The logits (n, classes) of each example by a model that has learned from the other folds only."""
    if len(examples) < 2:
        raise ValueError("at least 2 examples are needed: one to learn from and one to answer for")
    logits = np.empty((len(examples), examples.classes))
    parts = stratified_folds(examples.labels, folds, seed=seed)
    progress = OverFolds(on_progress, len(parts))
    for part in parts:
        others = np.setdiff1d(np.arange(len(examples)), part)
        fitted = learner.fit(picked(examples, others), seed=seed, on_progress=progress.epoch)
        logits[part] = fitted.logits(picked(examples, part).rows)
        progress.fold_done()
    return logits


def stratified_folds(labels: NDArray[np.int64], folds: int, *, seed: int) -> list[NDArray[np.int64]]:
    """Places of all labels, dealt out at random to folds that have their share of every class, as far as can be.

    There are at least 1 and at most as many folds as labels; their sizes differ by no more than 1.
    """
    shuffled = np.random.default_rng(seed).permutation(len(labels))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    folds = max(1, min(folds, len(labels)))
    return [np.sort(by_class[fold::folds]) for fold in range(folds)]


def expected_calibration_error(probabilities: NDArray[Any], labels: NDArray[np.int64], bins: int = 15) -> float:
    """How far confidence is from accuracy, in [0, 1], 0 = calibrated: the mean over examples of the distance between
    the two within the example's bin, of `bins` equally wide ones by the confidence in the likeliest class."""
    confidence = probabilities.max(axis=1)
    surplus = confidence - (probabilities.argmax(axis=1) == labels)
    bin_of = np.minimum((confidence * bins).astype(int), bins - 1)
    return float(np.abs(np.bincount(bin_of, surplus, minlength=bins)).sum() / len(labels))


class OverFolds:
    """Tells the progress of one training per fold as if it were that of a single one."""

    def __init__(self, on_progress: OnProgress, folds: int) -> None:
        self.on_progress, self.folds_left = on_progress, folds
        self.epochs_before = self.epochs = 0
        self.started = time.monotonic()

    def epoch(self, progress: Progress) -> None:
        self.epochs = progress.epoch
        fold_at_most = time.monotonic() - self.started + progress.seconds_left
        self.on_progress(
            replace(
                progress,
                epoch=self.epochs_before + progress.epoch,
                of=self.epochs_before + progress.of * self.folds_left,
                seconds_left=progress.seconds_left + fold_at_most * (self.folds_left - 1),
            )
        )

    def fold_done(self) -> None:
        self.epochs_before += self.epochs
        self.epochs = 0
        self.folds_left -= 1
        self.started = time.monotonic()


def _lowest(cost: Callable[[float], float], low: float, high: float) -> float:
    """Where cost is lowest between low and high, by golden-section search to 1 part in 10⁵."""
    golden = (math.sqrt(5) - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    cost_left, cost_right = cost(left), cost(right)
    while high - low > 1e-5:
        if cost_left <= cost_right:
            high, right, cost_right = right, left, cost_left
            left = high - golden * (high - low)
            cost_left = cost(left)
        else:
            low, left, cost_left = left, right, cost_right
            right = low + golden * (high - low)
            cost_right = cost(right)
    return (low + high) / 2
