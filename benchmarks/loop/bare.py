"""The work of the loop's rounds without the loop: the same trainings and as many forward passes, in one plain process.

`python -m benchmarks.loop.bare`, told by JSON on its standard input which rounds of which project, prints the seconds
of each as JSON. Labels, weights and seeds are read from the store, images are decoded before any clock runs, and the
first round is done once beforehand, so that nothing is done for the first time.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.demo.project import LOCAL_FILES
from benchmarks.loop.split import Bare
from jobs import train, versions
from jobs.draw import SCORING_BATCH
from jobs.settings import Settings
from jobs.workplace import Workplace, workplace
from models import calibration, card
from models.classifier import Classifier
from models.images import decode
from models.learner import Examples
from models.plan import Plan
from store import examples, pool, projects
from store.tables import Project


class Work:
    """What the rounds of a project did, to be done again."""

    def __init__(self, place: Workplace, project: Project, files_root: Path) -> None:
        self._place, self._project, self._files_root = place, project, files_root
        self._plan = Plan.from_dict(project.training)  # as the first training has settled it
        self._learner = place.workshop.learner(project.network, self._plan)

    def round(self, number: int, scored: int) -> Bare:
        learner = self._learner
        material, pictures = self._material(number), self._images(self._pool(scored))
        version = versions.version(number)
        seed = card.read(versions.folder(self._place.settings, self._project, version)).seed
        began = time.perf_counter()
        fitted = learner.fit(material, seed=seed)
        # the product measures its first model, or each one it calibrates, by more trainings: the same work here
        folds = 5 if self._plan.calibrate else train.FOLDS if number == 0 else 0
        if folds:
            calibration.out_of_fold(learner, material, seed=seed, folds=folds)
        trained = time.perf_counter()
        model = Classifier(learner, fitted, classes=self._project.classes, version=version)
        for start in range(0, len(pictures), SCORING_BATCH):
            model.probabilities(pictures[start : start + SCORING_BATCH])
        return Bare(trained - began, time.perf_counter() - trained, fitted.metrics["epochs"])

    def _material(self, number: int) -> Examples:
        with self._place.store.read() as session:
            found = examples.of_project(session, self._project, up_to_round=number)
        names = list(self._project.classes)
        return Examples(
            self._images([one.data for one in found]),
            np.array([names.index(one.class_name) for one in found], np.int64),
            np.array([one.weight for one in found], np.float32),
            len(names),
        )

    def _pool(self, count: int) -> list[dict[str, Any]]:
        with self._place.store.read() as session:
            ids = sorted(pool.known_ids(session, self._project))[:count]
            return [task.data for task in pool.by_studio_id(session, self._project, ids).values()]

    def _images(self, tasks: Sequence[Mapping[str, Any]]) -> NDArray[np.uint8]:
        paths = [self._files_root / task[self._project.field].removeprefix(LOCAL_FILES) for task in tasks]
        return np.stack([decode(path.read_bytes(), size=self._learner.input_size) for path in paths])


def main() -> None:
    asked = json.load(sys.stdin)
    with workplace(Settings.from_env({"IWES_HOME": asked["home"]})) as place:
        with place.store.read() as session:
            project = projects.by_id(session, asked["project"])
        work = Work(place, project, Path(asked["files_root"]))
        scored = {int(number): count for number, count in asked["scored"].items()}
        work.round(*next(iter(scored.items())))
        print(json.dumps([asdict(work.round(number, count)) for number, count in scored.items()]))


if __name__ == "__main__":
    main()
