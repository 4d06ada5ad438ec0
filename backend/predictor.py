"""Predictions for Label Studio: its own base class, around the model a project has at the moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from label_studio_ml.model import LabelStudioMLBase

from jobs.intake import classes_of
from jobs.rows import RowSource
from jobs.versions import UNTRAINED
from jobs.workplace import Workplace
from models.classifier import Classifier
from store.tables import Project


class IWeS(LabelStudioMLBase):  # type: ignore[misc]
    """One version of one project's model. It never changes, so threads may share it; a new version is a new object."""

    def __init__(self, place: Workplace, project: Project, classifier: Classifier | None) -> None:
        super().__init__(hostname=project.studio_url)
        self.model_version = classifier.version if classifier else UNTRAINED
        self._classifier = classifier
        self._labels = classes_of(project)
        if classifier is not None:
            self._source = RowSource(place, project, classifier.learner)

    def predict(self, tasks: Sequence[dict[str, Any]], **_: Any) -> list[dict[str, Any]]:
        """One prediction per task, in order; `score` is the probability of the class named. A task whose image cannot
        be read, or any task before the first training, gets an empty one."""
        answers = [{"result": [], "score": 0.0, "model_version": self.model_version} for _task in tasks]
        if self._classifier is None or not tasks:
            return answers
        loaded = self._source.load([task["data"] for task in tasks])
        for place, row in zip(loaded.good, self._classifier.probabilities(loaded.rows), strict=True):
            best = int(row.argmax())
            answers[place]["result"] = self._labels.result_of(self._classifier.classes[best])
            answers[place]["score"] = float(row[best])
        return answers
