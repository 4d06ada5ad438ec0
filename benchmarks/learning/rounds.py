"""A project played through: seed, then rounds of IWeS-ent, with labels that are known beforehand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import iwes
from benchmarks.learning.datasets import Labelled
from benchmarks.learning.described import examples, test_accuracy
from models.calibration import calibrate
from models.classifier import Classifier
from models.feed import Picked
from models.learner import Fitted, Learner, Rows

FLOOR = 0.05


@dataclass(frozen=True)
class Game:
    """What is played with: whose rows, how many labels at first and in each round."""

    learner: Learner
    rows: Rows
    data: Labelled
    seed_size: int = 50
    k: int = 50
    rounds: int = 9

    def labels(self) -> list[int]:
        """How many there are when each model is trained."""
        return [self.seed_size + self.k * number for number in range(self.rounds + 1)]

    def play(self, *, seed: int, calibrated: bool) -> NDArray[np.float64]:
        """The test accuracy of each round's model. The seed set of a seed is the same with and without calibration."""
        drawn = iwes.draw_seed(self.data.train, self.seed_size, rng=np.random.default_rng([seed, 0]))
        places, weights = drawn.index, drawn.weight
        accuracies = []
        for number in range(self.rounds + 1):
            training_set = examples(self.rows, self.data, places, weights.astype(np.float32))
            fitted = self.learner.fit(training_set, seed=seed)
            accuracies.append(test_accuracy(fitted, self.rows, self.data))
            if number == self.rounds:
                break
            temperature = calibrate(self.learner, training_set, seed=seed) if calibrated else 1.0
            left = np.setdiff1d(np.arange(self.data.train), places)
            probabilities = classifier(self, fitted, temperature).probabilities(Picked(self.rows, left))
            rng = np.random.default_rng([seed, number + 1])
            drawn = iwes.draw(iwes.entropy(probabilities), self.k, rng=rng, floor=FLOOR)
            places, weights = np.append(places, left[drawn.index]), np.append(weights, drawn.weight)
        return np.array(accuracies)


def classifier(game: Game, fitted: Fitted, temperature: float) -> Classifier:
    names = [str(number) for number in range(game.data.classes)]
    return Classifier(game.learner, fitted, classes=names, version="benchmark", temperature=temperature)
