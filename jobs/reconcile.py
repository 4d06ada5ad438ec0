"""Compares store and Label Studio and repairs every difference: webhooks come at most once, some changes send none."""

from __future__ import annotations

import logging
from collections import Counter
from datetime import datetime, timedelta

from jobs import restoring, step
from jobs.measures import count_repairs
from jobs.reading import Reader
from jobs.workplace import Workplace
from store import projects, rounds, subsets
from store.tables import Project, now

log = logging.getLogger(__name__)

OVERLAP = timedelta(seconds=60)
"""A change is stamped before it is committed; so much of what was read the last time is read once more."""
WHOLLY_EVERY = timedelta(days=1)
"""So often everything is read, changed or not, in case Label Studio's clock was set back."""


def reconcile(project_id: int) -> dict[str, int] | None:
    """The job. Returns what was repaired, by kind; a second run right after it repairs nothing."""
    return step.run(reconcile_project, project_id)


def reconcile_project(place: Workplace, project_id: int, *, wholly: bool = False) -> dict[str, int]:
    """Reads what changed since the last time, and where the two count differently; everything if `wholly`."""
    with place.store.read() as session:
        project = projects.by_id(session, project_id)
    if not project.connected:
        return {}
    studio = place.studio(project)
    moment, settings = studio.moment(), studio.settings()
    repaired = restoring.classes(place, project, settings)
    since = None if wholly or repaired else _since(project, moment)
    reader = Reader(place, project, studio)
    reader.changed(since)
    reader.differing()
    repaired += reader.found.repaired
    repaired += restoring.attachment(project, studio, settings)
    repaired += restoring.served_queue(place, project, studio)
    repaired += restoring.weights(place, project, studio, reader.found.tasks)
    with place.store.write() as session:
        project = projects.lock(session, project_id)
        rounds.close_if_complete(session, project)
        subsets.begin_if_mixed(session, project)
        read_until(project, moment, wholly=since is None)
    return _told(place, project_id, repaired)


def read_until(project: Project, moment: datetime, *, wholly: bool) -> None:
    """Notes up to which moment, by Label Studio's clock, its changes are in the store."""
    project.reconciled_at = now()
    project.read_until = moment
    if wholly:
        project.read_wholly_at = project.reconciled_at


def _since(project: Project, moment: datetime) -> datetime | None:
    """From when on to read; None for everything. A clock that went backwards is no guide, theirs or ours."""
    if project.read_until is None or project.read_wholly_at is None or project.read_until > moment:
        return None
    age = now() - project.read_wholly_at
    return project.read_until - OVERLAP if timedelta() <= age < WHOLLY_EVERY else None


def _told(place: Workplace, project_id: int, repaired: Counter[str]) -> dict[str, int]:
    found = {kind: count for kind, count in repaired.items() if count}
    if found:
        log.info("project %s: repaired %s", project_id, found)
        count_repairs(place.redis, project_id, found)
    return found
