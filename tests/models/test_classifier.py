"""A classifier gives probabilities that an entropy can be taken of, to any number of threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from models.classifier import Classifier
from models.training import BATCH_WITHOUT_GRADIENTS

Labelled = dict[str, Any]  # columns of the same length: images, labels, weights


def test_each_row_is_a_distribution_over_the_classes(classifier: Classifier, unseen: Labelled) -> None:
    rows = classifier.probabilities(unseen["images"])
    assert rows.shape == (300, 3)
    assert rows.dtype == np.float64
    assert (rows >= 0).all()
    np.testing.assert_allclose(rows.sum(axis=1), 1, rtol=0, atol=1e-14)
    assert (rows.argmax(axis=1) == unseen["labels"]).mean() > 0.98


def test_rows_are_in_the_order_of_the_images_across_batches(classifier: Classifier, unseen: Labelled) -> None:
    assert len(unseen["images"]) > BATCH_WITHOUT_GRADIENTS
    one_by_one = np.concatenate([classifier.probabilities(image[None]) for image in unseen["images"][250:262]])
    np.testing.assert_allclose(classifier.probabilities(unseen["images"])[250:262], one_by_one, atol=1e-6)


def test_no_image_gives_no_row(classifier: Classifier) -> None:
    assert classifier.probabilities(np.empty((0, 3, 28, 28), dtype=np.uint8)).shape == (0, 3)


def test_threads_get_the_answers_to_their_own_images(classifier: Classifier, unseen: Labelled) -> None:
    parts = np.array_split(unseen["images"], 12)
    expected = [classifier.probabilities(part) for part in parts]
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(classifier.probabilities, parts * 3))
    for index, answer in enumerate(answers):
        np.testing.assert_allclose(answer, expected[index % 12], atol=1e-6)


@pytest.mark.parametrize("shape", [(3, 28, 28), (1, 28, 28, 3), (1, 3, 32, 32)])
def test_images_of_another_shape_are_refused(classifier: Classifier, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"uint8 of shape \(n, 3, 28, 28\)"):
        classifier.probabilities(np.zeros(shape, dtype=np.uint8))


def test_scaled_images_are_refused(classifier: Classifier) -> None:
    with pytest.raises(ValueError, match="not float32"):
        classifier.probabilities(np.zeros((1, 3, 28, 28), dtype=np.float32))


def test_a_temperature_moves_probabilities_but_not_the_answer(classifier: Classifier, unseen: Labelled) -> None:
    learnt = (classifier.learner, classifier.fitted)
    warm = Classifier(*learnt, classes=classifier.classes, version="warm", temperature=3.0)
    plain, warmed = (model.probabilities(unseen["images"]) for model in (classifier, warm))
    assert (plain.argmax(axis=1) == warmed.argmax(axis=1)).all()
    assert (warmed.max(axis=1) < plain.max(axis=1)).all()
    cubed = plain ** (1 / 3)
    np.testing.assert_allclose(warmed, cubed / cubed.sum(axis=1, keepdims=True), atol=1e-9)


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("inf"), float("nan")])
def test_a_temperature_that_is_none_is_refused(classifier: Classifier, temperature: float) -> None:
    learnt = (classifier.learner, classifier.fitted)
    with pytest.raises(ValueError, match="temperature must be finite and above 0"):
        Classifier(*learnt, classes=classifier.classes, version="1", temperature=temperature)


@pytest.mark.parametrize("classes", [["only"], ["twice", "twice"]])
def test_classes_must_be_different_names(classifier: Classifier, classes: list[str]) -> None:
    with pytest.raises(ValueError, match="at least 2 different names"):
        Classifier(classifier.learner, classifier.fitted, classes=classes, version="1")


def test_more_classes_than_were_learnt_are_noticed(classifier: Classifier, unseen: Labelled) -> None:
    wrong = Classifier(classifier.learner, classifier.fitted, classes=["a", "b", "c", "d"], version="1")
    with pytest.raises(ValueError, match="4 classes gave logits of shape"):
        wrong.probabilities(unseen["images"])
