"""Shows a selected subset in Label Studio: weights and doubts beside its tasks, and a tab for each."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from sqlalchemy.orm import Session

from jobs import queues, step
from jobs.publish import WEIGHTS, Surfaced, weights_of, write_beside
from jobs.workplace import Workplace
from store import pool, projects, rounds, subsets
from store.tables import Doubt, Project, Subset
from studio import tabs

log = logging.getLogger(__name__)

Beside = dict[str, float | int | str | None]


SLICE = 50


def show(project_id: int, subset_id: int) -> None:
    """The job. Killed between any two calls it can run again: what is there already is not written again. It ends early
    where another job waits, which annotators may be waiting for; with that one's end this one is due again."""
    step.run(show_subset, project_id, subset_id)


def show_subset(place: Workplace, project_id: int, subset_id: int) -> None:
    with place.store.read() as session:
        project = projects.by_id(session, project_id)
        subset = subsets.by_id(session, subset_id)
        last = rounds.latest(session, project, subset)
        doubts = subsets.doubts(session, subset)
        withdrawn = subsets.doubts(session, subset, withdrawn=True)
        beside = _beside(session, project, subset, [*withdrawn, *doubts])
    studio = place.studio(project)
    there = studio.data_of(list(beside))
    missing = beside.keys() - there.keys()
    tasks = [Surfaced(studio_id, values) for studio_id, values in beside.items() if studio_id in there]
    tasks = [task for task in tasks if not task.is_in(there[task.studio_id])]
    for start in range(0, len(tasks), SLICE):
        if start and queues.any_waiting(place.redis, queues.STUDIO):
            log.info("project %s subset %s: %s of %s tasks written", project_id, subset.name, start, len(tasks))
            return
        missing |= write_beside(studio, tasks[start : start + SLICE])
        step.note("progress", {"written": min(start + SLICE, len(tasks)), "of": len(tasks)})
    tabs.ensure(studio, tabs.of_subset(subset.name))
    if doubts:
        tabs.ensure(studio, tabs.SECOND_LOOK)
    with place.store.write() as session:
        pool.forget(session, projects.lock(session, project_id), missing)
        subsets.published(session, subsets.by_id(session, subset_id), last.number if last else None, withdrawn)
    log.info("project %s subset %s: %s tasks shown", project_id, subset.name, len(beside) - len(missing))


def _beside(session: Session, project: Project, subset: Subset, doubts: Sequence[Doubt]) -> dict[int, Beside]:
    """What is to stand beside each task's image, by Label Studio's id; None for what must not stand there any more."""
    names = subsets.published_names(session, project, subset)
    beside: dict[int, Beside] = {}
    for task in subsets.dropped(session, subset):
        beside[task.studio_id] = dict.fromkeys((*WEIGHTS, "al_subset"))
    for draw in subsets.members(session, subset):
        beside[draw.task.studio_id] = weights_of(draw) | {"al_subset": ", ".join(names[draw.task_id])}
    for doubt in doubts:
        beside[doubt.task.studio_id] = beside.get(doubt.task.studio_id, {}) | _second_look(doubt)
    return beside


def _second_look(doubt: Doubt) -> Beside:
    found: Beside = {
        "al_second_look": round(doubt.improbability, 6),
        "al_disagreement": round(doubt.disagreement, 6),
        "al_label": doubt.class_name,
        "al_suggested": doubt.suggested,
    }
    return dict.fromkeys(found) if doubt.withdrawn else found
