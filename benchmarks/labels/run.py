"""One rule on one pool with one seed, from the seed set to the last model."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import iwes
from benchmarks.labels import model
from benchmarks.labels.pools import Pool
from benchmarks.labels.rules import RULES, Choice, Standing
from benchmarks.labels.settings import Settings
from models.feed import Picked

LOOKED_AT = 10_000
DIGITS = 4
"""What is kept of a share: more than seeds agree on."""


@dataclass(frozen=True)
class Job:
    data: str
    pool: str
    rule: str
    seed: int


@dataclass(frozen=True)
class Said:
    """What the labels of one round say of the pool that was left, next to the truth. Shares of right answers of the
    model that chose them, and how far the class balance is off (half of the summed differences). The hold-out is as
    many labels drawn uniformly from the same rest. Of a rest larger than `LOOKED_AT` the truth is that of so many,
    drawn uniformly: off by half a point at the most, where estimates from a hundred labels are off by five."""

    truth: float
    plain: float
    hold_out: float
    plain_balance: float
    hold_out_balance: float
    weighted: float | None = None
    weighted_balance: float | None = None
    assisted: float | None = None
    assisted_balance: float | None = None


@dataclass(frozen=True)
class Run:
    """What came of a job: everything that tables and pictures are made of."""

    job: Job
    digest: str  # of the data
    learner: str
    settings: Settings
    accuracy: tuple[float, ...]  # on the test set, of the model at each number of labels
    said: tuple[Said, ...]
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """What was said column by column: a third of the size of a document of thousands of runs."""
        columns = {one.name: [getattr(said, one.name) for said in self.said] for one in fields(Said)}
        return {**asdict(self), "said": columns}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Run:
        made = {"job": Job(**values["job"]), "settings": Settings(**values["settings"])}
        columns = values["said"]
        said = tuple(Said(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True))
        return cls(**{**values, **made, "accuracy": tuple(values["accuracy"]), "said": said})


def measure(
    job: Job,
    pool: Pool,
    digest: str,
    learner_name: str,
    settings: Settings,
    *,
    weights_folder: Path = Path(),
    device: str = "cpu",
) -> Run:
    """The seed alone decides the seed set and the first model, which are thus the same for all rules but those that
    calibrate. How a rule chooses, and what the hold-out is, come from random numbers of their own."""
    began = time.perf_counter()
    rule = RULES[job.rule]
    learner = model.learner_for(learner_name, pool, weights_folder, device)
    seeds, choosing, training, holding = (np.random.default_rng([job.seed, number]) for number in range(4))
    places = iwes.draw_seed(len(pool), settings.k0, rng=seeds).index
    weights = np.ones(len(places))
    accuracy, said = [], []
    for number in range(settings.rounds + 1):
        trained = [
            model.train(
                learner,
                pool,
                places,
                weights,
                seed=int(training.integers(2**31)) + extra,
                calibrated=rule.calibrated and number < settings.rounds,
            )
            for extra in range(rule.models)
        ]
        model.settle(learner, trained[0])
        answers = trained[0].probabilities(pool.test_images).argmax(axis=1)
        accuracy.append(round(float((answers == pool.test_labels).mean()), DIGITS))
        if number == settings.rounds:
            break
        left = np.setdiff1d(np.arange(len(pool)), places, assume_unique=True)
        choice = rule.choose(Standing(pool, places, left, trained), settings.k, choosing)
        said.append(_said(pool, left, choice, trained[0], holding))
        places, weights = np.append(places, choice.places), np.append(weights, choice.weights)
    return Run(job, digest, learner_name, settings, tuple(accuracy), tuple(said), round(time.perf_counter() - began, 1))


def _said(
    pool: Pool, left: NDArray[np.int64], choice: Choice, trained: model.Trained, rng: np.random.Generator
) -> Said:
    """Of images that show something; a skip says nothing."""
    shown = pool.answers >= 0
    of_left = rng.permutation(left[shown[left]])
    kept = shown[choice.places]
    asked = choice.places[kept]
    looked_at, held = of_left[:LOOKED_AT], of_left[: len(asked)]
    right_of = np.zeros(len(pool))
    for places in (looked_at, asked):
        answers = trained.probabilities(Picked(pool.images, places)).argmax(axis=1)
        right_of[places] = answers == pool.answers[places]
    truth = _balance(pool, of_left)
    weighted, weighted_balance, assisted, assisted_balance = None, None, None, None
    if choice.draw is not None and choice.expected is not None and choice.sure is not None and len(asked):
        chance = choice.draw.inclusion[kept]
        weighted = iwes.estimate_mean(right_of[asked], chance).value
        shares = iwes.class_balance(pool.answers[asked], chance, pool.classes)
        weighted_balance = _off(truth, np.array([share.value for share in shares]))
        beliefs = trained.probabilities(Picked(pool.images, choice.places))
        drawn = choice.draw.inclusion, beliefs.max(axis=1), choice.sure
        assisted = iwes.assisted_mean(right_of[choice.places], *drawn, within=kept).value
        shares = iwes.assisted_balance(
            pool.answers[choice.places], choice.draw.inclusion, beliefs, choice.expected, within=kept
        )
        assisted_balance = _off(truth, np.array([share.value for share in shares]))
    found = {
        "truth": float(right_of[looked_at].mean()),
        "plain": float(right_of[asked].mean()),
        "hold_out": float(right_of[held].mean()),
        "plain_balance": _off(truth, _balance(pool, asked)),
        "hold_out_balance": _off(truth, _balance(pool, held)),
        "weighted": weighted,
        "weighted_balance": weighted_balance,
        "assisted": assisted,
        "assisted_balance": assisted_balance,
    }
    return Said(**{name: None if share is None else round(share, DIGITS) for name, share in found.items()})


def _balance(pool: Pool, places: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.bincount(pool.answers[places], minlength=pool.classes) / len(places)


def _off(truth: NDArray[np.float64], balance: NDArray[np.float64]) -> float:
    return float(np.abs(truth - balance).sum() / 2)
