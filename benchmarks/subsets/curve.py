"""The models of one run, each trained by the project's own learner and tested as soon as it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.subsets.fashion import Labelled
from models.classifier import Classifier
from models.learner import Examples, Learner, Rows


@dataclass(frozen=True)
class Point:
    """One model: on how many labels it was trained, how long, and its share of right answers on the test set."""

    labels: int
    epochs: int
    accuracy: float


class Curve:
    """Makes models for a selection and keeps how good the first of each number of labels is.

    Where a rule trains two models on the same labels, the second is there to disagree with the first; only the first
    is what a user would get.
    """

    def __init__(self, learner: Learner, data: Labelled) -> None:
        self.learner, self.data = learner, data
        self.points: list[Point] = []

    def model(self, seed: int) -> Network:
        return Network(self, seed)

    def trained(self, labels: int, epochs: float, model: Network) -> None:
        if not any(point.labels == labels for point in self.points):
            answers = model.predict_proba(self.data.test_images).argmax(axis=1)
            self.points.append(Point(labels, int(epochs), float((answers == self.data.test_labels).mean())))


class Network:
    """A learner behind the two methods that `iwes.select_subset` asks of a model."""

    def __init__(self, curve: Curve, seed: int) -> None:
        self.curve, self.seed = curve, seed

    def fit(self, images: Rows, labels: NDArray[np.int64], weights: NDArray[np.float64], /) -> None:
        classes = self.curve.data.classes
        fitted = self.curve.learner.fit(Examples(images, labels, weights.astype(np.float32), classes), seed=self.seed)
        names = [str(number) for number in range(classes)]
        self.classifier = Classifier(self.curve.learner, fitted, classes=names, version="benchmark")
        self.curve.trained(len(labels), fitted.metrics["epochs"], self)

    def predict_proba(self, images: Rows, /) -> NDArray[np.float64]:
        return self.classifier.probabilities(images)
