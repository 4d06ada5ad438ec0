"""Surfaces a drawn round in Label Studio: weights first, then the queue, then the switch."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from jobs import loop, step
from jobs.workplace import Workplace
from store import pool, projects, rounds
from store.tables import Draw, Project, RoundState
from studio import queue
from studio.errors import NotFound, StudioError
from studio.projects import StudioProject

log = logging.getLogger(__name__)

WRITERS = 2
"""More do not help (20 tasks: one writer 2.3 s, two 1.6 s, eight 1.9 s): Label Studio is bound by its own processor."""

TOLD_EVERY = 5
"""How many tasks are written between two words to whoever watches."""


class WeightNotKept(StudioError):
    """Label Studio accepted a weight but shows another value."""


@dataclass(frozen=True)
class Surfaced:
    """A drawn task and what is written beside its image; None for what is to be there no more."""

    studio_id: int
    values: dict[str, float | int | str | None]

    def is_in(self, data: Mapping[str, Any]) -> bool:
        return all(data.get(key) == value for key, value in self.values.items())


def publish(project_id: int, number: int) -> None:
    """The job. Killed between any two calls it can run again: each of them is repeated without effect."""
    step.run(_publish, project_id, number)


def _publish(place: Workplace, project_id: int, number: int) -> None:
    publish_round(place, project_id, number)
    loop.prepare(place, project_id)


def _tell(done: int, of: int) -> None:
    if done % TOLD_EVERY == 0 or done == of:
        step.note("progress", {"written": done, "of": of})


def publish_round(
    place: Workplace, project_id: int, number: int, on_progress: Callable[[int, int], None] = _tell
) -> None:
    with place.store.read() as session:
        project = projects.by_id(session, project_id)
        round_ = rounds.by_number(session, project, number)
        if round_.state != RoundState.DRAWN:
            return
    surface(place, project, number, on_progress)
    with place.store.write() as session:
        project = projects.lock(session, project_id)
        rounds.open_(session, rounds.by_number(session, project, number))
        rounds.close_if_complete(session, project)


def surface(
    place: Workplace, project: Project, number: int, on_progress: Callable[[int, int], None] = lambda done, of: None
) -> None:
    """Makes Label Studio serve this round's tasks, in their order, and no others."""
    with place.store.read() as session:
        here = [draw for draw in rounds.by_number(session, project, number).draws if not draw.task.gone]
        tasks = [Surfaced(draw.task.studio_id, weights_of(draw) | {"al_subset": None}) for draw in here]
    studio = place.studio(project)
    missing = write_beside(studio, tasks, on_progress)
    if missing:
        log.warning("project %s: %s drawn tasks were deleted in Label Studio", project.id, len(missing))
        with place.store.write() as session:
            pool.forget(session, projects.lock(session, project.id), missing)
    serve_queue(place, project, studio, number)
    log.info("project %s round %s: %s tasks surfaced", project.id, number, len(tasks) - len(missing))


def serve_queue(place: Workplace, project: Project, studio: StudioProject, number: int) -> int:
    """The round's tasks that are still there become the queue annotators are served from; returns how many entries had
    to be added or taken away. The scores do not depend on what is gone, so the order stays whatever is repaired."""
    with place.store.read() as session:
        round_ = rounds.by_number(session, project, number)
        scores = {
            draw.task.studio_id: (draw.rank + 1) / (len(round_.draws) + 1)
            for draw in round_.draws
            if not draw.task.gone
        }
        previous = rounds.by_number(session, project, number - 1).queue if number else None
    if not scores:
        return 0
    changed = queue.upload(studio, round_.queue, scores)
    queue.serve(studio, round_.queue, previous=previous)
    return changed


def write_beside(
    studio: StudioProject, tasks: list[Surfaced], on_progress: Callable[[int, int], None] = lambda done, of: None
) -> set[int]:
    """Writes what is known of each task beside its image; returns the tasks that no longer exist."""
    there = studio.data_of([task.studio_id for task in tasks])
    missing = {task.studio_id for task in tasks} - set(there)
    with ThreadPoolExecutor(WRITERS) as threads:
        written = threads.map(lambda task: _write(studio, task, there.get(task.studio_id)), tasks)
        for done, gone in enumerate(written, start=1):
            if gone is not None:
                missing.add(gone)
            on_progress(done, len(tasks))
    return missing


def _write(studio: StudioProject, task: Surfaced, data: dict[str, Any] | None) -> int | None:
    """None, or the task's id if it is gone. Weights that are there already, from a try that was cut off, are left."""
    if data is None or task.is_in(data):
        return None
    try:
        stored = studio.replace_data(
            task.studio_id, {k: v for k, v in {**data, **task.values}.items() if v is not None}
        )
    except NotFound:
        return task.studio_id
    lost = [key for key, value in task.values.items() if stored.get(key) != value]
    if lost:
        raise WeightNotKept(f"Label Studio did not keep {', '.join(lost)} of task {task.studio_id}")
    return None


WEIGHTS = ("al_round", "al_weight", "al_probability", "al_inclusion")


def weights_of(draw: Draw) -> dict[str, float | int | str | None]:
    return {
        "al_round": draw.round.number,
        "al_weight": round(draw.weight, 6),
        "al_probability": round(draw.probability, 6),
        "al_inclusion": round(draw.inclusion, 6),
    }
