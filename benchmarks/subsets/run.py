"""One rule with one seed, from the seed set to the last model."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from benchmarks.subsets.curve import Curve, Point
from benchmarks.subsets.fashion import Labelled
from benchmarks.subsets.rules import RULES
from benchmarks.subsets.selection import Selection
from benchmarks.subsets.settings import Settings
from models.device import choose
from models.network_learner import FullLearner
from models.recipe import DEFAULT


@dataclass(frozen=True)
class Job:
    rule: str
    seed: int


@dataclass(frozen=True)
class Run:
    """What came of a job: everything that the tables and the picture are made of."""

    rule: str
    seed: int
    data: str  # digest
    settings: Settings
    points: tuple[Point, ...]
    share_capped: float
    effective_size: float
    largest_weight: float
    share_largest: float  # of those drawn, how many have the largest weight
    examined: int
    seconds: float  # on the clock
    cpu_seconds: float

    @property
    def job(self) -> Job:
        return Job(self.rule, self.seed)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Run:
        points = tuple(Point(**point) for point in values["points"])
        return cls(**{**values, "settings": Settings(**values["settings"]), "points": points})


def measure(job: Job, data: Labelled, settings: Settings) -> Run:
    clock, processor = time.perf_counter(), time.process_time()
    selection, points = select(job, data, settings)
    return Run(
        job.rule,
        job.seed,
        data.digest,
        settings,
        tuple(points),
        selection.share_capped(),
        selection.effective_size(),
        float(selection.weight.max()),
        selection.share_largest(),
        selection.examined,
        round(time.perf_counter() - clock, 1),
        round(time.process_time() - processor, 1),
    )


def select(job: Job, data: Labelled, settings: Settings) -> tuple[Selection, list[Point]]:
    """The seed alone decides the seed set and the first model, so these are the same for all rules but the full set."""
    rule = RULES[job.rule]
    recipe = replace(DEFAULT, epochs_at_most=settings.full_epochs if rule.whole else settings.epochs)
    curve = Curve(FullLearner("small-cnn", recipe, choose("cpu")), data)
    selection = rule.select(curve, settings, np.random.default_rng(job.seed))
    return selection, curve.points
