"""Tells a model that has gone astray from one that is no worse than chance would have it."""

from __future__ import annotations

import math

STANDARD_ERRORS = 3


def collapsed(seed_correct: int, seed_count: int, correct: int, count: int) -> str | None:
    """What is wrong with a new model, or None: it must do about as well on the seed set as the first model did.

    `seed_correct` of `seed_count` is how the model trained on the seed set alone did on the seed set's examples, and
    `correct` of `count` how the new model does on the same ones. It has collapsed when its accuracy is more than three
    standard errors of the difference lower. One right and one wrong answer are added to each side first (Agresti &
    Caffo, 2000): else an accuracy of 0 or 1 would count as certain, however few the examples.
    """
    before, variance_before = _accuracy(seed_correct, seed_count)
    now, variance_now = _accuracy(correct, count)
    allowed = STANDARD_ERRORS * math.sqrt(variance_before + variance_now)
    if before - now <= allowed:
        return None
    return (
        f"on the seed set {correct} of {count} are right, where the first model had {seed_correct} of {seed_count}: "
        f"{before - now:.2f} lower, and {STANDARD_ERRORS} standard errors are {allowed:.2f}"
    )


def _accuracy(correct: int, count: int) -> tuple[float, float]:
    """The smoothed accuracy and the variance of it."""
    if not 0 <= correct <= count:
        raise ValueError(f"{correct} of {count} cannot be right")
    accuracy = (correct + 1) / (count + 2)
    return accuracy, accuracy * (1 - accuracy) / (count + 2)
