"""Training a head on kept descriptions, next to training the whole network on the images."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.learning import datasets, described
from benchmarks.learning.clock import seconds
from benchmarks.learning.datasets import Labelled
from benchmarks.learning.options import Options
from benchmarks.learning.report import Goal, Report
from models.learner import Fitted, Learner, Progress, Rows
from models.plan import Plan

LABELS = 5_000


def run(options: Options, report: Report) -> None:
    _compare("resnet18", _data(options), options, report)
    if options.photos is None:
        report.remark(described.NO_PHOTOS)
    else:
        _compare(described.PHOTO_NETWORK, datasets.photos(options.photos), options, report)


def _data(options: Options) -> Labelled:
    if options.cifar is not None:
        return datasets.cifar(options.cifar)
    return datasets.mnist() if options.photos is None else datasets.photos(options.photos)


@dataclass(frozen=True)
class _Trained:
    seconds: float
    epochs: int
    accuracy: float
    converged: bool

    def __str__(self) -> str:
        return f"{self.seconds:,.1f} s, epochs {self.epochs}, accuracy {self.accuracy:.1%}"


def _compare(network: str, data: Labelled, options: Options, report: Report) -> None:
    data = datasets.some(data, train=options.sized(LABELS, 40), test=options.sized(1_000, 20))
    options.scratch.mkdir(parents=True, exist_ok=True)
    with (
        TemporaryDirectory(dir=options.scratch) as home,
        described.on_disk(data, Path(home), network, "full", report) as made,
    ):
        workshop, tasks = made.place.workshop, made.data(len(data))
        head, full = (workshop.learner(network, Plan(way=way)) for way in ("head", "full"))
        source = made.source(head)  # makes the backbone, so that describing is all that is timed
        report.progress(f"{network}: describing {len(data):,} images")
        took = seconds(lambda: source.load(tasks))
        rows, images = source.load(tasks).rows, made.source(full).load(tasks).rows
        first = _train(head, rows, data, report)
        whole = _train(_capped(full, options.epochs), images, data, report)
        second = _train(head, rows, data, report)
    faster = replace(first, seconds=(first.seconds + second.seconds) / 2)
    what = f"{network} on {data.train:,} labels of {data.name}"
    report.row(f"{what}: describing {len(data):,} images, once", f"{took:,.1f} s, {len(data) / took:,.1f} images/s")
    ratio = whole.seconds / faster.seconds
    report.row(f"{what}: head, next to full", f"head {faster}", f"full {whole}", ratio=ratio, goal=Goal(least=50))
    if not whole.converged:
        report.remark(
            f"{what}: full training was ended before it converged, by the cap of {options.epochs} (and the epochs that "
            "then learn from the held-out labels): the ratio is a lower bound. --epochs raises the cap."
        )


def _capped(learner: Learner, epochs: int) -> Learner:
    learner.recipe = replace(learner.recipe, epochs_at_most=min(epochs, learner.recipe.epochs_at_most))  # type: ignore[attr-defined]
    return learner


def _train(learner: Learner, rows: Rows, data: Labelled, report: Report) -> _Trained:
    last: list[Progress] = []

    def heard(progress: Progress) -> None:
        last[:] = [progress]
        if learner.frozen is None:
            report.progress(f"full training: epoch {progress.epoch} of at most {progress.of}, loss {progress.loss:.3f}")

    training_set = described.examples(rows, data, np.arange(data.train))
    fits: list[Fitted] = []
    took = seconds(lambda: fits.append(learner.fit(training_set, seed=1, on_progress=heard)))
    early = last[0].epoch < last[0].of or last[0].loss < learner.recipe.low_enough  # type: ignore[attr-defined]
    accuracy = described.test_accuracy(fits[0], rows, data)
    return _Trained(took, int(fits[0].metrics["epochs"]), accuracy, early)
