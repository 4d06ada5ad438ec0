"""How the peers are asked the same question: the k most informative rows of given probabilities and features."""

from __future__ import annotations

import warnings

import numpy as np
from baal.active.heuristics import Entropy
from cleanlab.multiannotator import get_active_learning_scores
from modAL.uncertainty import entropy_sampling
from scipy import stats
from skactiveml.base import SkactivemlClassifier
from skactiveml.pool import Badge, CoreSet
from small_text.query_strategies import PredictionEntropy

from benchmarks.speed.measure.asked import Array

warnings.filterwarnings("ignore")


class Answers:
    """A classifier that has already answered: its input is its probabilities."""

    def predict_proba(self, x: Array) -> Array:
        return x


def modal_entropy(probabilities: Array, k: int) -> Array:
    return np.asarray(entropy_sampling(Answers(), probabilities, n_instances=k)[0])


def baal_entropy(probabilities: Array, k: int) -> Array:
    return np.asarray(Entropy()(probabilities)[:k])


def small_text_entropy(probabilities: Array, k: int) -> Array:
    everything = np.arange(len(probabilities))
    nothing = everything[:0]
    return np.asarray(PredictionEntropy().query(Answers(), probabilities, everything, nothing, nothing, n=k))


def active_lab(probabilities: Array, k: int, labelled: int = 1000) -> Array:
    """cleanlab's ActiveLab. It judges the model by labels it has: the first of the rows, every tenth of them by two."""
    given = np.full((labelled, 2), np.nan)
    given[:, 0] = probabilities[:labelled].argmax(axis=1)
    given[::10, 1] = given[::10, 0]
    _, scores = get_active_learning_scores(given, probabilities[:labelled], probabilities[labelled:])
    return labelled + np.argsort(scores)[:k]


class FixedAnswers(SkactivemlClassifier):  # type: ignore[misc]
    """The same for scikit-activeml, which wants a classifier of its own kind."""

    def __init__(self, probabilities: Array | None = None, classes: list[int] | None = None) -> None:
        super().__init__(classes=classes)
        self.probabilities = probabilities

    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> FixedAnswers:
        return self

    def predict_proba(self, X: Array) -> Array | None:
        return self.probabilities


def activeml_badge(probabilities: Array, features: Array, k: int, seed: int = 0) -> Array:
    classifier = FixedAnswers(probabilities, classes=list(range(probabilities.shape[1])))
    unlabelled = np.full(len(features), np.nan)
    query = Badge(random_state=seed)
    return np.array(query.query(features, unlabelled, clf=classifier, fit_clf=False, batch_size=k))


def activeml_kcenter(features: Array, labelled: Array, k: int) -> Array:
    y = np.concatenate([np.full(len(features), np.nan), np.zeros(len(labelled))])
    return np.array(CoreSet(random_state=0).query(np.concatenate([features, labelled]), y, batch_size=k))


def reference_badge(probabilities: Array, features: Array, k: int, seed: int = 0) -> Array:
    """The algorithm of BADGE's authors as published: factored distances, one pass over the pool and one new
    discrete distribution object of scipy per pick."""
    slope = -probabilities
    slope[np.arange(len(slope)), probabilities.argmax(axis=1)] += 1.0
    slope_norm, feature_norm = (slope**2).sum(axis=1), (features**2).sum(axis=1)
    picked: list[int] = [int(np.argmax(slope_norm * feature_norm))]
    nearest = np.full(len(slope), np.inf)
    rng = np.random.RandomState(seed)
    while True:
        last = picked[-1]
        square = slope_norm * feature_norm + slope_norm[last] * feature_norm[last]
        square = square - 2 * (slope @ slope[last]) * (features @ features[last])
        nearest = np.minimum(nearest, np.sqrt(np.clip(square, 0, None)))
        nearest[picked] = 0
        if len(picked) == k:
            return np.array(picked)
        chance = nearest**2 / sum(nearest**2)
        table = stats.rv_discrete(name="table", values=(np.arange(len(chance)), chance))
        pick = int(table.rvs(size=1, random_state=rng)[0])
        while pick in picked:
            pick = int(table.rvs(size=1, random_state=rng)[0])
        picked.append(pick)
