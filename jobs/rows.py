"""From tasks to what a learner reads: images, or what its frozen part made of them, each computed once and kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobs.images import ImageSource, Loaded
from jobs.images.source import FETCHERS
from jobs.workplace import Workplace
from models.learner import Learner, Rows
from models.shelf import Shelf, key_of, shape_in
from store.tables import Project

CHUNK = 256
"""Images described, and kept, at a time."""

OnDescribed = Callable[[int, int], None]


def _shape_of_a_description(learner: Learner) -> tuple[int, ...]:
    blank = np.zeros((1, 3, learner.input_size, learner.input_size), np.uint8)
    return learner.describe(blank).shape[1:]


@dataclass(frozen=True)
class LoadedRows:
    rows: Rows
    """Those of the tasks whose image could be read, in the order asked for."""
    good: NDArray[np.int64]
    """Their places among the tasks asked for."""
    bad: dict[int, str]
    """Place → why it cannot be read."""
    away: dict[int, str]
    """Place → why it cannot be had just now: to be left out this time, not for good."""


class RowSource:
    """The rows of one project's tasks for one learner. Descriptions are kept by the image's content under the name of
    the frozen part, so they serve every round, every project, and every address the image is known by."""

    def __init__(self, place: Workplace, project: Project, learner: Learner, *, fetchers: int = FETCHERS) -> None:
        settings = place.settings
        self._learner = learner
        self._images = ImageSource.of(place, project, learner.input_size, fetchers=fetchers)
        self._kept: Shelf | None = None
        if learner.frozen is not None:
            folder = settings.features_folder / key_of(learner.frozen).hex()
            shape = shape_in(folder) or _shape_of_a_description(learner)
            self._kept = Shelf(folder, shape, np.float32, most_bytes=settings.shelf_bytes)

    def load(self, tasks: Sequence[Mapping[str, Any]], on_described: OnDescribed = lambda done, of: None) -> LoadedRows:
        """The rows of the tasks with these data. A server that does not answer raises; a bad image does not."""
        if self._kept is None:
            loaded = self._images.load(tasks)
            return LoadedRows(loaded.images, loaded.good, loaded.bad, loaded.away)
        rows = np.empty((len(tasks), *self._kept.shape), np.float32)
        missing = self._fill_known(self._kept, rows, tasks)
        bad: dict[int, str] = {}
        away: dict[int, str] = {}
        for start in range(0, len(missing), CHUNK):
            places = missing[start : start + CHUNK]
            unseen = len(missing) - len(places)
            others = max(len(tasks) - len(missing) - unseen, 0)  # no more are to be left out than are known
            loaded = self._fill_described(self._kept, rows, tasks, places, others)
            bad |= {int(places[index]): reason for index, reason in loaded.bad.items()}
            away |= {int(places[index]): reason for index, reason in loaded.away.items()}
            on_described(start + len(places), len(missing))
        if not bad and not away:
            return LoadedRows(rows, np.arange(len(tasks)), bad, away)
        good = np.setdiff1d(np.arange(len(tasks)), [*bad, *away])
        return LoadedRows(rows[good], good, bad, away)

    def _fill_known(
        self, kept: Shelf, rows: NDArray[np.float32], tasks: Sequence[Mapping[str, Any]]
    ) -> NDArray[np.int64]:
        """Fills in what was described before; returns the places of the others."""
        keys = self._images.keys(tasks)
        seen = np.array([place for place, key in enumerate(keys) if key is not None], np.int64)
        found, view = kept.look_up([key for key in keys if key is not None])
        rows[seen[found]] = view[:]
        return np.setdiff1d(np.arange(len(tasks)), seen[found])

    def _fill_described(
        self,
        kept: Shelf,
        rows: NDArray[np.float32],
        tasks: Sequence[Mapping[str, Any]],
        places: NDArray[np.int64],
        others: int,
    ) -> Loaded:
        """Describes the images at these places and fills them in. One that is known under another address, which shows
        only once it is fetched, is not described again."""
        loaded = self._images.load([tasks[place] for place in places], others=others)
        good = places[loaded.good]
        known, view = kept.look_up(loaded.keys)
        rows[good[known]] = view[:]
        new = np.setdiff1d(np.arange(len(good)), known)
        if len(new):
            images = np.concatenate(list(loaded.images.take(new).chunks(CHUNK)))
            rows[good[new]] = self._learner.describe(images)
            kept.put([loaded.keys[index] for index in new], rows[good[new]])
        return loaded
