"""Takes in what Label Studio reports, then whatever that made due."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from sqlalchemy.orm import Session

from jobs import logs
from jobs.loop import advance
from jobs.workplace import Workplace
from store import database, labels, pool, projects, rounds
from store.tables import Project, RoundState, now
from studio.labels import ImageClasses
from studio.messages import Annotation, Event

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""While no round is open, each label may make something due; to look for it is costly in a large pool, so it is done
this often at the most. The worker's tick looks as well."""

SEEN_EVERY = timedelta(seconds=1)
"""How exactly it is remembered when the last webhook came."""


@dataclass
class _Arrival:
    project_id: int
    event: Event
    done: bool = False
    awaited: bool = False
    """Whether somebody waits for it, who could be asked to write for all."""
    woken: threading.Event = field(default_factory=threading.Event)
    """Set when it is stored, or when it is its turn to write for all that wait."""
    look: bool = False
    """Whether something may be due now."""
    failure: Exception | None = None


@dataclass
class Intake:
    """Stores what webhooks say. Those that arrive while another is being written wait for it and are then written
    together, in one transaction and so with one write to the disk; each is answered only when it is stored. Nothing
    here calls Label Studio back: it is waiting for our answer inside the annotator's own request."""

    place: Workplace
    _waiting: list[_Arrival] = field(default_factory=list)
    _writing: bool = False
    _changing: threading.Lock = field(default_factory=threading.Lock)
    _looked_at: dict[int, float] = field(default_factory=dict)
    _to_look: dict[int, Future[list[str]]] = field(default_factory=dict)
    _beside: ThreadPoolExecutor = field(default_factory=partial(ThreadPoolExecutor, 1, thread_name_prefix="due"))

    def take(self, project_id: int, event: Event) -> list[str]:
        """Stores the event and closes the round if that was its last label. Returns the jobs that are due then."""
        due = self.announce(project_id, event)()
        return due.result() if due else []

    def announce(self, project_id: int, event: Event) -> Callable[[], Future[list[str]] | None]:
        """Says that an event is there. What is returned has to be called: it stores the event, if that was not done
        together with another, and returns the jobs that may be due then, once they are enqueued: that can take a while,
        and nobody has to wait for it. Whoever announces many before the first of these calls has all of them written at
        once."""
        arrival = _Arrival(project_id, event)
        with self._changing:
            self._waiting.append(arrival)
        return partial(self._stored, arrival)

    def _stored(self, arrival: _Arrival) -> Future[list[str]] | None:
        with self._changing:
            arrival.awaited = True
            writes = not (arrival.done or self._writing)
            self._writing = self._writing or writes
        if not writes:
            arrival.woken.wait()
        if not arrival.done:
            self._write_for_all()
        if arrival.failure is not None:
            raise arrival.failure
        return self._look_beside(arrival.project_id) if arrival.look else None

    def _look_beside(self, project_id: int) -> Future[list[str]]:
        """Whoever has not begun to look yet will see this, too."""
        with self._changing:
            if project_id not in self._to_look:
                self._to_look[project_id] = self._beside.submit(self._advance, project_id)
            return self._to_look[project_id]

    def _advance(self, project_id: int) -> list[str]:
        with self._changing:
            self._to_look.pop(project_id)
        with logs.about(project=project_id):
            try:
                return advance(self.place, project_id)
            except Exception:
                log.warning("what is due now is found out by the next who looks", exc_info=True)
                raise

    def _write_for_all(self) -> None:
        """Each of those it was written for is woken by itself: were they to queue for a lock instead, they would have
        to pass it on one by one, which takes longer than the writing."""
        with self._changing:
            together, self._waiting = self._waiting, []
        try:
            self._write(together)
        finally:
            with self._changing:
                for other in together:
                    if not other.done:  # the process is ending; nobody may believe that it is stored
                        other.done, other.failure = True, RuntimeError("the writing was broken off")
                following = next((other for other in self._waiting if other.awaited), None)
                self._writing = following is not None
            for other in ([following] if following else []) + together:
                other.woken.set()

    def _write(self, arrivals: list[_Arrival]) -> None:
        by_project: dict[int, list[_Arrival]] = defaultdict(list)
        for arrival in arrivals:
            by_project[arrival.project_id].append(arrival)
        for project_id, together in by_project.items():
            try:
                self._store(project_id, together)
            except database.AWAY as error:  # the store is away or busy: it would be so for each of them
                for arrival in together:
                    arrival.failure = error
            except Exception:  # noqa: BLE001 - whatever it was, it is met again below
                self._one_by_one(project_id, together)
            for arrival in together:
                arrival.done = True

    def _one_by_one(self, project_id: int, arrivals: list[_Arrival]) -> None:
        """One that cannot be stored must not take the others with it."""
        for arrival in arrivals:
            try:
                self._store(project_id, [arrival])
            except Exception as error:  # noqa: BLE001 - raised where the request is answered
                arrival.failure = error

    def _store(self, project_id: int, arrivals: Sequence[_Arrival]) -> None:
        with self.place.store.write() as session:
            project = projects.lock(session, project_id)
            if project.webhook_seen_at is None or now() - project.webhook_seen_at > SEEN_EVERY:
                project.webhook_seen_at = now()
            for event in merged(arrival.event for arrival in arrivals):
                pool.forget(session, project, event.deleted_tasks)
                labels.delete(session, project, event.deleted_annotations)
                tasks = pool.add(session, project, event.tasks)
                tasks |= pool.known(session, project, {a.task_id for a in event.annotations} - tasks.keys())
                record_annotations(session, project, event.annotations, tasks)
            arrived = sum(len(a.event.annotations) + len(a.event.deleted_tasks) for a in arrivals)
            closed, between = False, False
            if not rounds.still_needs(session, project, arrived=arrived):
                closed = rounds.close_if_complete(session, project) is not None
                last = rounds.latest(session, project)
                between = last is None or last.state == RoundState.TRAINED
        deletes = any(a.event.deleted_tasks or a.event.deleted_annotations for a in arrivals)
        # One of them is enough: more would look for the same.
        arrivals[-1].look = closed or deletes or (between and self._may_look(project_id))

    def _may_look(self, project_id: int) -> bool:
        moment = time.monotonic()
        if moment - self._looked_at.get(project_id, -LOOK_SECONDS) < LOOK_SECONDS:
            return False
        self._looked_at[project_id] = moment
        return True


def merged(events: Iterable[Event]) -> list[Event]:
    """The same said with fewer events, for many at once cost little more than one. The order is kept where it matters:
    what deletes stands alone."""
    found: list[Event] = []
    for event in events:
        deletes = event.deleted_annotations or event.deleted_tasks
        last = found[-1] if found else None
        if last is None or deletes or last.deleted_annotations or last.deleted_tasks:
            found.append(event)
        else:
            tasks, annotations = {**last.tasks, **event.tasks}, [*last.annotations, *event.annotations]
            found[-1] = Event("several", event.project_id, annotations=annotations, tasks=tasks)
    return found


def start_training(workplace: Workplace, project_id: int) -> list[str]:
    """Closes the open round with the labels it has. Pressed again while it trains, it names the same job."""
    with workplace.store.write() as session:
        rounds.close_early(session, projects.lock(session, project_id))
    return advance(workplace, project_id, even_if_failed=True)


def record_annotations(
    session: Session,
    project: Project,
    annotations: Sequence[Annotation],
    tasks: Mapping[int, pool.Known],
    *,
    came_along: Callable[[Annotation], bool] = lambda annotation: False,
    read_there: bool = False,
) -> int:
    """Records annotations of those tasks, by Label Studio's id, that are mirrored (others are left to reconcile);
    returns how many were new or changed."""
    classes = classes_of(project)
    there = [a for a in annotations if a.task_id in tasks and not tasks[a.task_id].gone]
    new = [(tasks[a.task_id].id, _as_label(classes, a, came_along(a))) for a in there]
    return labels.record(session, project, new, read_there=read_there)


def _as_label(classes: ImageClasses, annotation: Annotation, imported: bool) -> labels.NewLabel:
    class_name, problem = None, None
    if not annotation.skipped:
        class_name, problem = classes.class_of(annotation.result)
    return labels.NewLabel(
        annotation_id=annotation.id,
        class_name=class_name,
        skipped=annotation.skipped,
        ground_truth=annotation.ground_truth,
        annotator=annotation.annotator,
        created_at=annotation.created_at,
        updated_at=annotation.updated_at,
        problem=problem,
        imported=imported,
    )


def classes_of(project: Project) -> ImageClasses:
    return ImageClasses(project.control, project.target, project.field, tuple(project.classes))
