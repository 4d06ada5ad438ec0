"""Temperatures make over- and underconfident answers honest, and stay sane where labels say little."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from models import calibration
from models.calibration import (
    HIGHEST,
    LOWEST,
    PRIOR_LABELS,
    calibrate,
    expected_calibration_error,
    out_of_fold,
    stratified_folds,
    temperature,
)
from models.learner import Examples, Fitted, OnProgress, Progress, Rows, unheard


def softmax(logits: NDArray[Any]) -> NDArray[np.float64]:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
    return shares


def honest(count: int, *, classes: int = 5, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Logits whose softmax the labels were drawn from."""
    rng = np.random.default_rng(seed)
    logits = 1.5 * rng.normal(size=(count, classes))
    labels = np.array([rng.choice(classes, p=row) for row in softmax(logits)])
    return logits, labels


@pytest.mark.parametrize("factor", [0.25, 1.0, 4.0])
def test_logits_a_factor_too_large_get_that_temperature(factor: float) -> None:
    logits, labels = honest(5000)
    assert temperature(logits * factor, labels, np.ones(5000)) == pytest.approx(factor, rel=0.08)


def test_it_makes_overconfident_answers_honest() -> None:
    logits, labels = honest(3000)
    sure = logits * 5
    found = temperature(sure, labels, np.ones(3000))
    assert expected_calibration_error(softmax(sure), labels) > 0.2
    assert expected_calibration_error(softmax(sure / found), labels) < 0.04


def test_a_weight_counts_like_that_many_labels() -> None:
    logits, labels = honest(200)
    weights = np.random.default_rng(1).integers(1, 4, 200)
    repeated = temperature(np.repeat(3 * logits, weights, axis=0), np.repeat(labels, weights), np.ones(weights.sum()))
    # the weights' mean counts as one label, so there are fewer of them against the prior: hence not quite equal
    assert temperature(3 * logits, labels, weights) == pytest.approx(repeated, rel=0.05)
    assert temperature(3 * logits, labels, 7 * weights) == pytest.approx(temperature(3 * logits, labels, weights))


@pytest.mark.parametrize("count", [10, 300])
def test_it_is_the_minimum_that_scipy_finds(count: int) -> None:
    logits, labels = honest(count)
    logits = logits * 2.5

    def cost(log_t: float) -> float:
        likelihoods = softmax(logits / np.exp(log_t))[np.arange(count), labels]
        return float(-np.log(likelihoods).sum() + PRIOR_LABELS * log_t**2 / 2)

    expected = np.exp(minimize_scalar(cost, bounds=(np.log(LOWEST), np.log(HIGHEST)), method="bounded").x)
    assert temperature(logits, labels, np.ones(count)) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("count", [1, 10, 50])
def test_labels_that_are_all_answered_right_do_not_make_it_certain(count: int) -> None:
    labels = np.arange(count) % 3
    logits = 4.0 * np.eye(3)[labels]
    assert 0.5 < temperature(logits, labels, np.ones(count)) <= 1


def test_few_labels_move_it_less_than_many() -> None:
    logits, labels = np.array([[3.0, 0.0]] * 2), np.array([0, 1])
    few = temperature(logits, labels, np.ones(2))
    many = temperature(np.repeat(logits, 100, axis=0), np.repeat(labels, 100), np.ones(200))
    assert 1 < few < many


def test_a_class_that_was_ruled_out_altogether_gives_a_finite_temperature() -> None:
    logits = np.array([[0.0, -np.inf], [-np.inf, 0.0], [0.0, -np.inf]])
    assert 1 < temperature(logits, np.array([0, 1, 1]), np.ones(3)) <= HIGHEST


@given(st.integers(0, 10**6), st.integers(1, 40), st.floats(0.001, 1000))
def test_it_is_always_within_its_bounds(seed: int, count: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    found = temperature(scale * rng.normal(size=(count, 3)), rng.integers(0, 3, count), rng.uniform(0.1, 9, count))
    assert LOWEST <= found <= HIGHEST


def test_the_calibration_error_is_the_distance_between_confidence_and_accuracy() -> None:
    confident = np.tile([0.8, 0.2], (10, 1))
    assert expected_calibration_error(confident, np.zeros(10, dtype=np.int64)) == pytest.approx(0.2)
    assert expected_calibration_error(confident, np.array([0] * 8 + [1] * 2)) == pytest.approx(0.0)
    two_bins = np.array([[0.9, 0.1]] * 10 + [[0.6, 0.4]] * 10)
    assert expected_calibration_error(two_bins, np.array([0] * 10 + [1] * 10)) == pytest.approx((0.1 + 0.6) / 2)
    assert expected_calibration_error(np.eye(2), np.array([0, 1])) == 0.0


class NearestMean:
    """A learner as small as one can be: a class is where the mean of its rows is. Far too sure of itself."""

    input_size = 1
    frozen = None

    def __init__(self) -> None:
        self.learned_from: list[NDArray[Any]] = []

    def describe(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        raise NotImplementedError

    def fit(
        self, examples: Examples, *, seed: int, start: Fitted | None = None, on_progress: OnProgress = unheard
    ) -> Fitted:
        rows = examples.rows[:]
        self.learned_from.append(rows)
        for epoch in (1, 2):
            on_progress(Progress(epoch, 4, loss=1.0, accuracy=None, seconds_left=0.25 * (4 - epoch)))
        means = [rows[examples.labels == label].mean(axis=0) for label in np.unique(examples.labels)]
        known = np.unique(examples.labels)
        return Means(np.array(means), known, examples.classes)

    def restore(self, tensors: Mapping[str, NDArray[Any]], *, classes: int) -> Fitted:
        raise NotImplementedError


class Means:
    metrics: Mapping[str, float] = {}

    def __init__(self, means: NDArray[Any], known: NDArray[np.int64], classes: int) -> None:
        self.means, self.known, self.classes = means, known, classes

    def logits(self, rows: Rows) -> NDArray[np.float64]:
        answers = np.full((len(rows), self.classes), -np.inf)
        answers[:, self.known] = -4 * ((rows[:][:, None, :] - self.means) ** 2).sum(axis=2)
        return answers

    def tensors(self) -> dict[str, NDArray[Any]]:
        return {}


def clouds(count: int, *, seed: int = 0) -> Examples:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, count)
    rows = (np.eye(3)[labels] + rng.normal(size=(count, 3))).astype(np.float32)
    return Examples(rows, labels, np.ones(count, dtype=np.float32), 3)


def test_each_example_is_answered_for_by_a_model_that_has_not_seen_it() -> None:
    learner, examples = NearestMean(), clouds(53)
    answers = out_of_fold(learner, examples, seed=1)
    assert answers.shape == (53, 3)
    assert len(learner.learned_from) == 5
    for part, learned_from in zip(stratified_folds(examples.labels, 5, seed=1), learner.learned_from, strict=True):
        seen = {tuple(row) for row in learned_from}
        assert len(seen) == 53 - len(part)
        assert not seen & {tuple(row) for row in examples.rows[part]}
        others = np.setdiff1d(np.arange(53), part)
        again = NearestMean().fit(
            Examples(examples.rows[others], examples.labels[others], np.ones(len(others)), 3), seed=1
        )
        np.testing.assert_allclose(answers[part], again.logits(examples.rows[part]))


def test_fewer_examples_than_folds_are_left_out_one_by_one() -> None:
    learner = NearestMean()
    assert out_of_fold(learner, clouds(3), seed=1).shape == (3, 3)
    assert [len(rows) for rows in learner.learned_from] == [2, 2, 2]


def test_one_example_alone_cannot_be_left_out() -> None:
    with pytest.raises(ValueError, match="at least 2 examples"):
        out_of_fold(NearestMean(), clouds(1), seed=1)
    assert calibrate(NearestMean(), clouds(1), seed=1) == 1.0


def test_a_learner_that_is_too_sure_is_calibrated_for_what_it_has_not_seen() -> None:
    learner, examples, unseen = NearestMean(), clouds(200), clouds(2000, seed=1)
    found = calibrate(learner, examples, seed=1)
    answers = learner.fit(examples, seed=1).logits(unseen.rows)
    assert expected_calibration_error(softmax(answers), unseen.labels) > 0.2
    assert expected_calibration_error(softmax(answers / found), unseen.labels) < 0.06


class Clock:
    """Goes only when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


def test_the_progress_of_all_folds_is_told_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(calibration, "time", clock)
    seen: list[Progress] = []

    def hear(progress: Progress) -> None:
        seen.append(progress)
        clock.now += 0.25

    out_of_fold(NearestMean(), clouds(30), seed=1, folds=3, on_progress=hear)
    assert [progress.epoch for progress in seen] == [1, 2, 3, 4, 5, 6]
    assert [progress.of for progress in seen] == [12, 12, 10, 10, 8, 8], "each fold took 2 epochs of at most 4"
    assert [progress.seconds_left for progress in seen] == pytest.approx([2.25, 2.0, 1.5, 1.25, 0.75, 0.5])


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(1, 8), st.integers(0, 99))
def test_folds_share_out_every_class_and_every_example(labels: list[int], folds: int, seed: int) -> None:
    classes = np.array(labels)
    parts = stratified_folds(classes, folds, seed=seed)
    assert sorted(np.concatenate(parts)) == list(range(len(labels)))
    assert len(parts) == min(folds, len(labels))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    for label in set(labels):
        of_class = [int((classes[part] == label).sum()) for part in parts]
        assert max(of_class) - min(of_class) <= 1
