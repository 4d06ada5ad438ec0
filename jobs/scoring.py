"""How likely tasks are to be drawn, told by the models of a project for just those tasks that a draw asks about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

import iwes
from jobs import step, versions
from jobs.foreseen import MOST_CLASSES, Foreseen
from jobs.rows import LoadedRows, RowSource
from jobs.workplace import Workplace
from models import checkpoint
from store import pool
from store.tables import Project

RULES = {
    "ent": iwes.PROBABILITIES["entropy"],
    "margin": iwes.PROBABILITIES["margin"],
    "dis": iwes.PROBABILITIES["disagreement"],
    "loss": iwes.PROBABILITIES["loss"],
}


class Opinions:
    """What one model, or two, say of tasks; both read the same rows, so each image is loaded once."""

    def __init__(self, place: Workplace, project: Project, model_versions: Sequence[str]) -> None:
        self._place = place
        folders = [versions.folder(place.settings, project, version) for version in model_versions]
        self._classifiers = [checkpoint.load(folder, place.workshop) for folder in folders]
        first = self._classifiers[0]
        self._classifiers = [model for model in self._classifiers if model.comparable_with(first)]
        self._source = RowSource(place, project, first.learner)
        self.classes = first.classes

    @property
    def models(self) -> int:
        """How many there are: a g that was trained for other classes or on other rows cannot be compared with its f."""
        return len(self._classifiers)

    def of(self, task_ids: Sequence[int]) -> tuple[LoadedRows, list[NDArray[np.float64]]]:
        """Which of the tasks could be read, and each model's probabilities for those."""
        with self._place.store.read() as session:
            data = pool.data_of(session, task_ids)
        loaded = self._source.load(data)
        return loaded, [model.probabilities(loaded.rows) for model in self._classifiers] if len(loaded.good) else []


class Scorer:
    """The score of tasks by a rule; each image is fetched and scored once however often it is asked."""

    def __init__(self, opinions: Opinions, rule: str, labels: Mapping[int, str] | None = None) -> None:
        """`labels` holds the class of every task that may be asked about, for a rule that needs it."""
        self._opinions = opinions
        self._rule = RULES[rule]
        self._labels = labels or {}
        self._number = {name: number for number, name in enumerate(opinions.classes)}
        self._known: dict[int, float] = {}
        self.predicted: dict[int, str] = {}
        """The class each scored task was given."""
        self._expected = np.zeros(len(opinions.classes))
        self._sure = 0.0
        self.newly_bad: dict[int, str] = {}
        self.away: set[int] = set()
        """Those whose image cannot be had just now: left out of this draw, and of no other."""

    def over(self, task_ids: Sequence[int]) -> Callable[[NDArray[np.int64]], NDArray[np.float64]]:
        """The score function of a pool made of these tasks, by their places in it."""
        ids = np.array(task_ids, np.int64)

        def score(places: NDArray[np.int64]) -> NDArray[np.float64]:
            found = self.score(ids[places])
            step.note("progress", {"scored": len(self._known), "of": len(ids)})
            return found

        return score

    def score(self, task_ids: NDArray[np.int64]) -> NDArray[np.float64]:
        missing = [int(i) for i in task_ids if int(i) not in self._known]
        if missing:
            self._score(missing)
        return np.array([self._known[int(i)] for i in task_ids])

    def foreseen(self, task_ids: Sequence[int]) -> Foreseen:
        """Of tasks that were scored. Their probabilities are asked for once more: kept for all that were scored, they
        would not fit into memory."""
        predicted = {task_id: self.predicted[task_id] for task_id in task_ids if task_id in self.predicted}
        if not predicted or len(self._opinions.classes) > MOST_CLASSES:
            return Foreseen(predicted)
        loaded, beliefs = self._opinions.of(task_ids)
        rows = beliefs[0].astype("<f4") if beliefs else ()
        count = len(self.predicted)
        return Foreseen(
            predicted,
            {task_ids[place]: row.tobytes() for place, row in zip(loaded.good, rows, strict=True)},
            {
                "tasks": count,
                "classes": self._opinions.classes,
                "shares": (self._expected / count).tolist(),
                "sure": self._sure / count,
            },
        )

    def _score(self, task_ids: list[int]) -> None:
        loaded, beliefs = self._opinions.of(task_ids)
        if beliefs:
            readable = [task_ids[place] for place in loaded.good]
            found = self._rule.score(beliefs, self._numbers(readable))
            best = [self._opinions.classes[place] for place in beliefs[0].argmax(axis=1)]
            self._known |= zip(readable, found.tolist(), strict=True)
            self.predicted |= zip(readable, best, strict=True)
            self._expected += beliefs[0].sum(axis=0)
            self._sure += float(beliefs[0].max(axis=1).sum())
        for place, reason in loaded.bad.items():
            self._known[task_ids[place]] = 0.0
            self.newly_bad[task_ids[place]] = reason
        for place in loaded.away:
            self._known[task_ids[place]] = 0.0
            self.away.add(task_ids[place])

    def _numbers(self, task_ids: Sequence[int]) -> NDArray[np.int64]:
        if not self._rule.needs_labels:
            return np.empty(0, np.int64)
        return np.array([self._number[self._labels[task_id]] for task_id in task_ids], np.int64)
