"""Scoring tasks whose images or descriptions are on disk, next to a bare loop of the same module over memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import nn

from benchmarks.learning.clock import in_turns
from benchmarks.learning.office import Office, batches, office
from benchmarks.learning.options import Options
from benchmarks.learning.pictures import noise
from benchmarks.learning.report import Goal, Report
from jobs import versions
from jobs.scoring import Opinions, Scorer
from models import checkpoint, networks
from models.card import Origin
from models.classifier import Classifier
from models.plan import Plan

VERSION = "benchmark"
BARE_BATCHES = (256, 8)
"""The quicker one counts: large batches suit small images, and small ones large images."""


def run(options: Options, report: Report) -> None:
    enough = Goal(least=0.90)
    _part("small-cnn", "full", options.sized(20_000, 1_024), options, report, enough)
    _part("resnet18", "full", options.sized(384, 32), options, report, enough)
    # a head is so quick that finding what it reads is the work: shown, without a goal
    _part("resnet18", "head", options.sized(1_024, 32), options, report, None)


def _part(network: str, way: str, count: int, options: Options, report: Report, goal: Goal | None) -> None:
    plan, side = Plan(way=way), networks.input_size(network)
    with (
        TemporaryDirectory(dir=_made(options.scratch)) as home,
        office(
            Path(home),
            lambda number: noise(number, 28),
            count,
            lambda place: place.workshop.learner(network, plan),
            network=network,
            progress=report.progress,
        ) as made,
    ):
        report.progress(f"{network} {way}: {count:,} tasks, bare loop and ours in turns")
        took = _times(made, _random_model(made, network, plan), count, repeats=options.sized(5, 1))
    what = (
        f"{network}, {count:,} images of {side} px" if way == "full" else f"head of {network}, {count:,} descriptions"
    )
    bare, by = min((took[f"bare by {size}"], size) for size in BARE_BATCHES)
    peer = f"bare loop by {by}: {count / bare:,.0f}/s"
    for name, step in (("from the cache to probabilities", "cached"), ("from the store to entropy", "whole")):
        report.row(f"{what}: {name}", f"{count / took[step]:,.0f}/s", peer, ratio=bare / took[step], goal=goal)
    each = {name: seconds / count * 1e6 for name, seconds in took.items()}
    report.remark(
        f"{what}, µs for each of them: bare loops "
        + ", ".join(f"{each[f'bare by {size}']:,.1f} by {size}" for size in BARE_BATCHES)
        + f"; the classifier over memory {each['memory']:,.1f}; finding what it reads {each['load']:,.1f}; reading it "
        f"{each['cached'] - each['load'] - each['memory']:,.1f}; the store and the scorer's books "
        f"{each['whole'] - each['cached']:,.1f}; all together {each['whole']:,.1f}."
    )


def _times(made: Office, classifier: Classifier, count: int, *, repeats: int) -> dict[str, float]:
    order = np.random.default_rng(1).permutation(count)  # as a draw asks: all over the pool
    data, ids, source = made.data(count), made.ids(), made.source(classifier.learner)
    rows = torch.from_numpy(np.concatenate([source.load(part).rows[:] for part in batches(data)]))
    module: nn.Module = classifier.fitted.module  # type: ignore[attr-defined]
    opinions = Opinions(made.place, made.project, [VERSION])
    scorers = iter([Scorer(opinions, "ent") for _ in range(repeats + 1)])  # each knows what it scored

    def bare(size: int) -> None:
        with torch.inference_mode():
            for part in rows.split(size):
                module(part)

    def memory() -> None:
        for part in batches(rows.numpy()):
            classifier.probabilities(part)

    def load() -> None:
        for part in batches(order):
            source.load([data[place] for place in part])

    def cached() -> None:
        for part in batches(order):
            classifier.probabilities(source.load([data[place] for place in part]).rows)

    def whole() -> None:
        scorer = next(scorers)
        for part in batches(ids[order]):
            scorer.score(part)

    loops: dict[str, Callable[[], object]] = {f"bare by {size}": partial(bare, size) for size in BARE_BATCHES}
    ours = {"memory": memory, "load": load, "cached": cached, "whole": whole}
    return in_turns(loops | ours, repeats=repeats)


def _random_model(made: Office, network: str, plan: Plan) -> Classifier:
    """Random weights score as fast as learned ones."""
    learner = made.place.workshop.learner(network, plan)
    classes = list(made.project.classes)
    make = networks.build if plan.way == "full" else networks.head
    tensors = {name: tensor.numpy() for name, tensor in make(network, classes=len(classes)).state_dict().items()}
    fitted = learner.restore(tensors, classes=len(classes))
    classifier = Classifier(learner, fitted, classes=classes, version=VERSION)
    origin = Origin(network=network, way=plan.way, seed=0, round=0, training_set="", metrics={})
    checkpoint.save(versions.folder(made.place.settings, made.project, VERSION), classifier, origin)
    return classifier


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
