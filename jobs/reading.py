"""Reads Label Studio into the store: its tasks and their annotations, all of them, or only where something changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from jobs.intake import record_annotations
from jobs.workplace import Workplace
from store import labels, pool, projects
from store.tables import Project
from studio.messages import Annotation
from studio.projects import LAST_ID, StudioProject, StudioTask

SMALL = 200
"""A range of so many tasks is read rather than halved once more."""

CameAlong = Callable[[Annotation], bool]


@dataclass
class Reading:
    """What was found to differ, by kind, and Label Studio's ids of the tasks that were read."""

    repaired: Counter[str] = field(default_factory=Counter)
    tasks: set[int] = field(default_factory=set)


class Reader:
    """`came_along` tells the annotations that nobody was asked for: of imported ones Label Studio sends no message, so
    they are found here."""

    def __init__(
        self,
        place: Workplace,
        project: Project,
        studio: StudioProject,
        *,
        came_along: CameAlong = lambda annotation: annotation.came_along,
        on_progress: Callable[[int], None] = lambda count: None,
    ) -> None:
        self._store = place.store
        self._project = project
        self._studio = studio
        self._came_along = came_along
        self._on_progress = on_progress
        self.found = Reading()

    def changed(self, since: datetime | None) -> None:
        """Takes in every task that changed since then, by Label Studio's clock; every task where that is None."""
        for page in self._studio.tasks(since=since):
            self._take(page)

    def differing(self) -> None:
        """Takes in the parts of the project in which Label Studio and the store do not count the same: a task deleted
        there leaves no trace but this. Ranges of ids are halved until the difference is found, so it costs a few
        requests for each, however large the project is."""
        for first, last in self._differing(1, LAST_ID):
            with self._store.read() as session:
                known = pool.ids_between(session, self._project, first, last)
            seen: set[int] = set()
            for page in self._studio.tasks(first=first, last=last):
                self._take(page, all_annotations=True)
                seen |= {task.id for task in page}
            self._forget([task_id for task_id in known if task_id not in seen])

    def _differing(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        with self._store.read() as session:
            held = pool.census(session, self._project, first, last)
            ids = pool.ids_between(session, self._project, first, last) if held.tasks > SMALL else []
        if (held.tasks, held.annotations) == self._studio.census(first, last):
            return
        if not ids:
            yield first, last
            return
        middle = ids[len(ids) // 2]
        yield from self._differing(first, middle - 1)
        yield from self._differing(middle, last)

    def _take(self, page: list[StudioTask], *, all_annotations: bool = False) -> None:
        with self._store.write() as session:
            project = projects.lock(session, self._project.id)
            new = pool.mirror(session, project, {task.id: task.data for task in page})
            ids = [task.id for task in page]
            believed = set(labels.live_annotations(session, project, ids).values())
            drawn = pool.drawn(session, project, ids)
        self.found.repaired["tasks added"] += new
        self.found.tasks |= {task.id for task in page}
        self._on_progress(len(self.found.tasks))
        # A task whose data we wrote during a submit can have lost count of its annotation.
        worth_a_look = believed | drawn | {task.id for task in page if task.annotations or all_annotations}
        self._take_annotations([task_id for task_id in ids if task_id in worth_a_look])

    def _take_annotations(self, task_ids: list[int]) -> None:
        for page in self._studio.annotations_of(task_ids):
            annotations = [annotation for found in page.values() for annotation in found]
            with self._store.write() as session:
                project = projects.lock(session, self._project.id)
                believed = labels.live_annotations(session, project, page)
                missed = [a for a in annotations if a.id not in believed]
                known = [a for a in annotations if a.id in believed]
                tasks = pool.known(session, project, page)
                changed = record_annotations(session, project, known, tasks, read_there=True)
                new = record_annotations(session, project, missed, tasks, read_there=True, came_along=self._came_along)
            self.found.repaired["labels changed"] += changed
            self.found.repaired["labels missed"] += new
            self._take_back(believed.keys() - {a.id for a in annotations})

    def _take_back(self, annotation_ids: Iterable[int]) -> None:
        """Asked for one by one: a label may have arrived by webhook after its task was read."""
        gone = [found for found in annotation_ids if not self._studio.has_annotation(found)]
        if gone:
            with self._store.write() as session:
                project = projects.lock(session, self._project.id)
                self.found.repaired["labels deleted"] += labels.delete(session, project, gone)

    def _forget(self, task_ids: list[int]) -> None:
        """Asked for again: a task may have been mirrored by webhook after its range was read."""
        if not task_ids:
            return
        there = self._studio.data_of(task_ids)
        gone = [task_id for task_id in task_ids if task_id not in there]
        with self._store.write() as session:
            pool.forget(session, projects.lock(session, self._project.id), gone)
        self.found.repaired["tasks deleted"] += len(gone)
