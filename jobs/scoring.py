"""Scores tasks with a trained model, as far as the stream asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

import iwes
from jobs import versions
from jobs.rows import RowSource
from jobs.workplace import Workplace
from models import checkpoint
from store import pool
from store.tables import Project


class Scorer:
    """Normalised entropy of tasks under one model; each image is fetched and scored once however often it is asked."""

    def __init__(self, place: Workplace, project: Project, model_version: str) -> None:
        self._place = place
        self._classifier = checkpoint.load(versions.folder(place.settings, project, model_version), place.workshop)
        self._source = RowSource(place, project, self._classifier.learner)
        self._known: dict[int, float] = {}
        self.predicted: dict[int, str] = {}
        """The class each scored task was given."""
        self.newly_bad: dict[int, str] = {}
        self.away: set[int] = set()
        """Those whose image cannot be had just now: left out of this draw, and of no other."""

    def over(self, task_ids: Sequence[int]) -> Callable[[NDArray[np.int64]], NDArray[np.float64]]:
        """The score function of a pool made of these tasks, by their places in it."""
        ids = np.array(task_ids, np.int64)
        return lambda places: self.entropy(ids[places])

    def entropy(self, task_ids: NDArray[np.int64]) -> NDArray[np.float64]:
        missing = [int(i) for i in task_ids if int(i) not in self._known]
        if missing:
            self._score(missing)
        return np.array([self._known[int(i)] for i in task_ids])

    def set_aside(self) -> None:
        with self._place.store.write() as session:
            for task_id, reason in self.newly_bad.items():
                pool.set_aside(session, task_id, reason)
        self.newly_bad = {}

    def _score(self, task_ids: list[int]) -> None:
        with self._place.store.read() as session:
            data = pool.data_of(session, task_ids)
        loaded = self._source.load(data)
        if len(loaded.good):
            probabilities = self._classifier.probabilities(loaded.rows)
            readable = [task_ids[place] for place in loaded.good]
            best = [self._classifier.classes[place] for place in probabilities.argmax(axis=1)]
            self._known |= zip(readable, iwes.entropy(probabilities).tolist(), strict=True)
            self.predicted |= zip(readable, best, strict=True)
        for place, reason in loaded.bad.items():
            self._known[task_ids[place]] = 0.0
            self.newly_bad[task_ids[place]] = reason
        for place in loaded.away:
            self._known[task_ids[place]] = 0.0
            self.away.add(task_ids[place])
