"""What memory scoring takes beyond the model, measured in a process of its own that finds all images on disk."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.learning.glance import Glance
from benchmarks.learning.office import Office, batches, office
from benchmarks.learning.options import Options
from benchmarks.learning.pictures import noise
from benchmarks.learning.report import Goal, Report
from benchmarks.learning.resident import Usage, watched
from jobs.settings import Settings
from jobs.workplace import Workplace, workplace
from models.classifier import Classifier
from models.learner import Learner
from models.plan import Plan
from store import projects

CLASSES = 10


def run(options: Options, report: Report) -> None:
    count = options.sized(options.images, 2_000)
    options.scratch.mkdir(parents=True, exist_ok=True)
    for kind, side in ((SMALL_CNN, 28), (GLANCE, 224)):
        need = count * 3 * side**2 / 2**30
        free = shutil.disk_usage(options.scratch).free / 2**30
        if free < 1.2 * need + 1:
            report.remark(
                f"Skipped {kind}: {count:,} images of {side} px need {1.2 * need + 1:.0f} GB and {options.scratch} has "
                f"{free:.0f}; name a roomier folder with --scratch, or fewer images with --images."
            )
            continue
        with TemporaryDirectory(dir=options.scratch) as home:
            usage = _measure(kind, Path(home), count, max(8.0, 3 * need), report)
        report.row(
            f"{kind}, {count:,} images of {side} px ({need:.1f} GB of pixels): resident memory beyond the model",
            f"{(usage.most - usage.before) / 1024:.2f} GB",
            f"model and libraries {usage.before / 1024:.2f} GB",
            goal=Goal(below=1.5, unit="{:.1f} GB"),
            judged=(usage.most - usage.before) / 1024,
        )
        report.remark(
            f"{kind}: at most {usage.most_own:,.0f} MB of its own and {usage.most_mapped:,.0f} MB of mapped files "
            "(libraries included) at a time."
        )


def _measure(kind: str, home: Path, count: int, gigabytes: float, report: Report) -> Usage:
    make = _LEARNERS[kind]
    # 4 × 4 px are decoded to whatever size the learner reads, quickly, and every file is still another
    with office(
        home, lambda number: noise(number, 4), count, make, gigabytes=gigabytes, progress=report.progress
    ) as made:
        project_id = made.project.id
    report.progress(f"{kind}: scoring in a new process")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(_scored, kind, home, gigabytes, project_id, count).result()


def _scored(kind: str, home: Path, gigabytes: float, project_id: int, count: int) -> Usage:
    settings = replace(Settings.from_env({"IWES_HOME": str(home)}), cache_gigabytes=gigabytes, device="cpu")
    with workplace(settings) as place:
        with place.store.read() as session:
            made = Office(place, projects.by_id(session, project_id))
        learner = _LEARNERS[kind](place)
        classifier = _classifier(learner)
        source = made.source(learner)
        data = made.data(count)
        order = np.random.default_rng(1).permutation(count)
        with watched() as usage:
            for part in batches(order):
                classifier.probabilities(source.load([data[place] for place in part]).rows)
    return usage


def _classifier(learner: Learner) -> Classifier:
    from models import networks

    tensors = {}
    if not isinstance(learner, Glance):
        tensors = {name: t.numpy() for name, t in networks.build("small-cnn", classes=CLASSES).state_dict().items()}
    fitted = learner.restore(tensors, classes=CLASSES)
    return Classifier(learner, fitted, classes=[str(number) for number in range(CLASSES)], version="benchmark")


def _small_cnn(place: Workplace) -> Learner:
    return place.workshop.learner("small-cnn", Plan())


def _glance(place: Workplace) -> Learner:
    return Glance(224, CLASSES)


SMALL_CNN, GLANCE = "small-cnn", "a learner that only looks"
_LEARNERS: dict[str, Callable[[Workplace], Learner]] = {SMALL_CNN: _small_cnn, GLANCE: _glance}
