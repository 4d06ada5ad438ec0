"""Predictions for Label Studio: its own base class, around the model a project has at the moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from label_studio_ml.model import LabelStudioMLBase
from numpy.typing import NDArray

import iwes
from jobs.intake import classes_of
from jobs.rows import LoadedRows, RowSource
from jobs.versions import UNTRAINED
from jobs.workplace import Workplace
from models.classifier import Classifier
from store import examples
from store.tables import Project


class IWeS(LabelStudioMLBase):  # type: ignore[misc]
    """One version of one project's model. It never changes, so threads may share it; a new version is a new object."""

    def __init__(
        self, place: Workplace, project: Project, classifier: Classifier | None, twin: Classifier | None = None
    ) -> None:
        super().__init__(hostname=project.studio_url)
        self.model_version = classifier.version if classifier else UNTRAINED
        self._place, self._project = place, project
        self._classifier = classifier
        self._twin = twin if classifier and twin and twin.comparable_with(classifier) else None
        self.versions = self.model_version, twin.version if twin else None
        self._labels = classes_of(project)
        if classifier is not None:
            self._source = RowSource(place, project, classifier.learner)

    def predict(self, tasks: Sequence[dict[str, Any]], **_: Any) -> list[dict[str, Any]]:
        """One prediction per task, in order: the likeliest class, and in its region how likely it is. The `score` is
        that probability too; but of a task that has a label, where there are two models, it is how far they are apart
        about it, p(x, y) of IWeS-dis, so that a reviewer can sort by it. A task whose image cannot be read, or any
        task before the first training, gets an empty prediction."""
        answers = [{"result": [], "score": 0.0, "model_version": self.model_version} for _task in tasks]
        if self._classifier is None or not tasks:
            return answers
        loaded = self._source.load([task["data"] for task in tasks])
        if not len(loaded.good):
            return answers
        beliefs = self._classifier.probabilities(loaded.rows)
        apart = self._disagreement([tasks[place] for place in loaded.good], loaded, beliefs)
        for row, place in enumerate(loaded.good):
            best = int(beliefs[row].argmax())
            likely = float(beliefs[row, best])
            (region,) = self._labels.result_of(self._classifier.classes[best])
            answers[place]["result"] = [region | {"score": likely}]
            answers[place]["score"] = apart.get(row, likely)
        return answers

    def _disagreement(
        self, tasks: Sequence[dict[str, Any]], loaded: LoadedRows, beliefs: NDArray[np.float64]
    ) -> dict[int, float]:
        """p(x, y) of those tasks, by their places, that have a label."""
        if self._classifier is None or self._twin is None:
            return {}
        with self._place.store.read() as session:
            labels = examples.classes_of(session, self._project, [int(task.get("id") or 0) for task in tasks])
        number = {name: place for place, name in enumerate(self._classifier.classes)}
        named = [(row, number.get(labels.get(int(task.get("id") or 0), ""))) for row, task in enumerate(tasks)]
        rows = [row for row, label in named if label is not None]
        if not rows:
            return {}
        of_twin = self._twin.probabilities(loaded.rows)
        label = np.array([label for _, label in named if label is not None])
        return dict(zip(rows, iwes.disagreement(beliefs[rows], of_twin[rows], label).tolist(), strict=True))
