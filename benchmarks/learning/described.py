"""Labelled images as a learner reads them, through the same caches as in a project."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.learning import datasets
from benchmarks.learning.datasets import Labelled
from benchmarks.learning.office import Office, office
from benchmarks.learning.options import Options
from benchmarks.learning.report import Report
from models.feed import Picked
from models.learner import Examples, Fitted, Learner, Rows
from models.plan import Plan
from models.shelf import key_of

PHOTO_NETWORK = "efficientnet-lite0"
NO_PHOTOS = (
    "Skipped what needs photos: give --photos FOLDER, with train/ and test/ in it and a folder per class in each."
)


@contextmanager
def on_disk(data: Labelled, home: Path, network: str, way: str, report: Report) -> Iterator[Office]:
    """A project of these images, all fetched; for the way `head` also described."""
    with office(
        home,
        data.content,
        len(data),
        lambda place: place.workshop.learner(network, Plan(way=way)),
        network=network,
        classes=data.classes,
        progress=report.progress,
    ) as made:
        yield made


def photos(folder: Path, options: Options, report: Report) -> tuple[Labelled, Learner, NDArray[np.float32]]:
    """The photos, a learner of heads, and the photos' descriptions; kept in the scratch folder for the next run."""
    data = datasets.photos(folder)
    if options.quick:
        data = datasets.some(data, train=120, test=40)
    report.progress(f"describing {len(data):,} photos with {PHOTO_NETWORK}, where they are not described yet")
    # by content, so that what is kept of other photos, or of fewer, is never taken for these
    every = b"".join(key_of(data.content(number)) for number in range(len(data)))
    with on_disk(data, options.scratch / f"photos-{key_of(every).hex()}", PHOTO_NETWORK, "head", report) as made:
        learner = made.place.workshop.learner(PHOTO_NETWORK, Plan(way="head"))
        return data, learner, np.array(made.source(learner).load(made.data(len(data))).rows[:])


def examples(
    rows: Rows, data: Labelled, places: NDArray[np.int64], weights: NDArray[np.float32] | None = None
) -> Examples:
    """The training set of the images at these places."""
    weights = np.ones(len(places), np.float32) if weights is None else weights
    return Examples(Picked(rows, places), data.labels[places], weights, data.classes)


def test_accuracy(fitted: Fitted, rows: Rows, data: Labelled) -> float:
    places = np.arange(data.train, len(data))
    return float((fitted.logits(Picked(rows, places)).argmax(axis=1) == data.labels[places]).mean())
