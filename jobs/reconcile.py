"""Compares store and Label Studio and repairs every difference: webhooks come at most once, some changes send none."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

from jobs import step
from jobs.intake import record_annotations
from jobs.publish import surface
from jobs.workplace import Workplace
from store import labels, pool, projects, rounds
from store.tables import Project, RoundState, now
from studio import connection, queue
from studio.projects import StudioProject

log = logging.getLogger(__name__)


def reconcile(project_id: int) -> dict[str, int]:
    """The job. Returns what was repaired, by kind; a second run right after it repairs nothing."""
    return step.run(reconcile_project, project_id)


def reconcile_project(place: Workplace, project_id: int) -> dict[str, int]:
    with place.store.read() as session:
        project = projects.by_id(session, project_id)
    if not project.connected:
        return {}
    studio = place.studio(project)
    repaired = sync_tasks(place, project, studio) + sync_labels(place, project, studio)
    repaired += _restore_webhook(place, project, studio)
    repaired += _restore_queue(place, project, studio)
    with place.store.write() as session:
        project = projects.lock(session, project_id)
        rounds.close_if_complete(session, project)
        project.reconciled_at = now()
    found = {kind: count for kind, count in repaired.items() if count}
    if found:
        log.info("project %s: repaired %s", project_id, found)
    return found


def sync_tasks(
    place: Workplace, project: Project, studio: StudioProject, on_progress: Callable[[int], None] = lambda count: None
) -> Counter[str]:
    """Mirrors Label Studio's tasks. What is gone is decided against what was known before the reading began, and only
    if a second reading misses it too: a deletion in between shifts the pages under the reader."""
    with place.store.read() as session:
        known = pool.known_ids(session, project)
    seen: set[int] = set()
    new = 0
    for page in studio.tasks():
        with place.store.write() as session:
            new += pool.mirror(session, project, {task.id: task.data for task in page})
        seen |= {task.id for task in page}
        on_progress(len(seen))
    gone = known - seen
    if gone:
        gone -= {task.id for page in studio.tasks() for task in page}
        with place.store.write() as session:
            pool.forget(session, project, gone)
    return Counter({"tasks added": new, "tasks deleted": len(gone)})


def sync_labels(place: Workplace, project: Project, studio: StudioProject) -> Counter[str]:
    """Records every annotation Label Studio holds, and takes back those it no longer holds."""
    with place.store.read() as session:
        known = labels.live_annotations(session, project)
    seen = set()
    changes: Counter[str] = Counter()
    for page in studio.annotations():
        found = [annotation for _task, annotations in page for annotation in annotations]
        news = [a for a in found if a.id not in known or a.updated_at > known[a.id]]
        seen |= {annotation.id for annotation in found}
        changes["labels missed"] += sum(a.id not in known for a in news)
        changes["labels changed"] += sum(a.id in known for a in news)
        if news:
            with place.store.write() as session:
                record_annotations(session, projects.lock(session, project.id), news)
    gone = set(known) - seen
    if gone:
        gone -= {a.id for page in studio.annotations() for _task, annotations in page for a in annotations}
        with place.store.write() as session:
            changes["labels deleted"] = labels.delete(session, projects.lock(session, project.id), gone)
    return changes


def _restore_webhook(place: Workplace, project: Project, studio: StudioProject) -> Counter[str]:
    rows = connection.webhooks(studio, project.backend_url)
    header = {connection.SECRET_HEADER: project.secret}
    if len(rows) == 1 and rows[0]["is_active"] and rows[0]["headers"] == header:
        return Counter()
    webhook_id = connection.set_webhook(studio, project.backend_url, project.secret)
    with place.store.write() as session:
        projects.lock(session, project.id).webhook_id = webhook_id
    return Counter({"webhook restored": 1})


def _restore_queue(place: Workplace, project: Project, studio: StudioProject) -> Counter[str]:
    """Annotators must be on the newest round's queue, whatever was changed by hand. A round that is being published
    at this moment is left to its own job: until that says it is done, either queue may be the right one."""
    with place.store.read() as session:
        current = rounds.latest(session, project)
    if current is None or current.state == RoundState.DRAWN:
        return Counter()
    settings = studio.settings()
    served = settings.model_version == current.queue and settings.sampling == "Uncertainty sampling"
    if served and current.queue in queue.versions(studio):
        return Counter()
    surface(place, project, current.number)
    return Counter({"queue restored": 1})
