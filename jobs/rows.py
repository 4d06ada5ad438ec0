"""From tasks to what a learner reads: images, or what its frozen part made of them, each computed once and kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobs.images import ImageSource
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
    """Place → why it could not be read."""


class RowSource:
    """The rows of one project's tasks for one learner. Descriptions are kept by the image's content under the name of
    the frozen part, so they serve every round, every project, and every address the image is known by."""

    def __init__(self, place: Workplace, project: Project, learner: Learner) -> None:
        settings = place.settings
        self._learner = learner
        self._images = ImageSource(
            project,
            place.studio(project).client,
            settings.image_cache,
            learner.input_size,
            prefixes=settings.image_prefixes,
            most_bytes=settings.shelf_bytes,
        )
        self._kept: Shelf | None = None
        if learner.frozen is not None:
            folder = settings.features_folder / key_of(learner.frozen).hex()
            shape = shape_in(folder) or _shape_of_a_description(learner)
            self._kept = Shelf(folder, shape, np.float32, most_bytes=settings.shelf_bytes)

    def load(self, tasks: Sequence[Mapping[str, Any]], on_described: OnDescribed = lambda done, of: None) -> LoadedRows:
        """The rows of the tasks with these data. A server that does not answer raises; a bad image does not."""
        if self._kept is None:
            loaded = self._images.load(tasks)
            return LoadedRows(loaded.images, loaded.good, loaded.bad)
        keys = self._images.keys(tasks)
        rows = self._known(self._kept, keys)
        missing = [place for place in range(len(tasks)) if place not in rows]
        bad: dict[int, str] = {}
        for start in range(0, len(missing), CHUNK):
            places = missing[start : start + CHUNK]
            described, unreadable = self._describe(self._kept, [tasks[place] for place in places])
            rows |= {places[index]: row for index, row in described.items()}
            bad |= {places[index]: reason for index, reason in unreadable.items()}
            on_described(start + len(places), len(missing))
        good = sorted(rows)
        stacked = np.stack([rows[place] for place in good]) if good else np.zeros((0, *self._kept.shape), np.float32)
        return LoadedRows(stacked, np.array(good, np.int64), bad)

    @staticmethod
    def _known(kept: Shelf, keys: Sequence[bytes | None]) -> dict[int, NDArray[np.float32]]:
        asked = [(place, key) for place, key in enumerate(keys) if key is not None]
        found, view = kept.look_up([key for _place, key in asked])
        rows = view[:]
        return {asked[index][0]: rows[row] for row, index in enumerate(found.tolist())}

    def _describe(
        self, kept: Shelf, tasks: Sequence[Mapping[str, Any]]
    ) -> tuple[dict[int, NDArray[np.float32]], dict[int, str]]:
        loaded = self._images.load(tasks)
        if not len(loaded.good):
            return {}, loaded.bad
        rows = self._learner.describe(np.concatenate(list(loaded.images.chunks(CHUNK))))
        kept.put(loaded.keys, rows)
        return {int(place): row for place, row in zip(loaded.good, rows, strict=True)}, loaded.bad
