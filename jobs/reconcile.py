"""Compares store and Label Studio and repairs every difference: webhooks come at most once, some changes send none."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

from jobs import step
from jobs.intake import classes_of, record_annotations
from jobs.publish import surface
from jobs.workplace import Workplace
from store import labels, pool, projects, rounds, subsets
from store.tables import Project, RoundState, now
from studio import connection, queue
from studio.errors import UnsupportedConfig
from studio.labels import read_config
from studio.messages import Annotation
from studio.projects import ProjectSettings, StudioProject

log = logging.getLogger(__name__)


def reconcile(project_id: int) -> dict[str, int] | None:
    """The job. Returns what was repaired, by kind; a second run right after it repairs nothing."""
    return step.run(reconcile_project, project_id)


def reconcile_project(place: Workplace, project_id: int) -> dict[str, int]:
    with place.store.read() as session:
        project = projects.by_id(session, project_id)
    if not project.connected:
        return {}
    studio = place.studio(project)
    settings = studio.settings()
    repaired = _refresh_classes(place, project, settings)
    repaired += sync_tasks(place, project, studio)
    repaired += sync_labels(place, project, studio, read_again=bool(repaired))
    repaired += _restore_connection(project, studio, settings)
    repaired += _restore_queue(place, project, studio)
    with place.store.write() as session:
        project = projects.lock(session, project_id)
        rounds.close_if_complete(session, project)
        subsets.begin_if_mixed(session, project)
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
            new += pool.mirror(session, projects.lock(session, project.id), {task.id: task.data for task in page})
        seen |= {task.id for task in page}
        on_progress(len(seen))
    gone = known - seen
    if gone:
        gone -= {task.id for page in studio.tasks() for task in page}
        with place.store.write() as session:
            pool.forget(session, projects.lock(session, project.id), gone)
    return Counter({"tasks added": new, "tasks deleted": len(gone)})


def sync_labels(
    place: Workplace,
    project: Project,
    studio: StudioProject,
    *,
    read_again: bool = False,
    came_along: Callable[[Annotation], bool] = lambda annotation: annotation.came_along,
) -> Counter[str]:
    """Records every annotation Label Studio holds, and takes back those it no longer holds. `read_again` also those
    that have not changed: under a new labelling config they may say something else. `came_along` tells those that
    nobody was asked for; of imported ones Label Studio sends no message, so they are found here."""
    with place.store.read() as session:
        known = labels.live_annotations(session, project)
    seen = set()
    changes: Counter[str] = Counter()
    for page in studio.annotations():
        found = [annotation for _task, annotations in page for annotation in annotations]
        news = [a for a in found if read_again or a.id not in known or a.updated_at > known[a.id]]
        seen |= {annotation.id for annotation in found}
        with place.store.write() as session:
            locked = projects.lock(session, project.id)
            missed = (a for a in news if a.id not in known)
            changes["labels missed"] += record_annotations(session, locked, missed, imported=came_along)
            changes["labels changed"] += record_annotations(session, locked, (a for a in news if a.id in known))
    # Asked one by one: a task whose data were written during a submit can lose count of its annotations, and then it
    # is not listed as annotated although it is.
    gone = {annotation_id for annotation_id in set(known) - seen if not studio.has_annotation(annotation_id)}
    if gone:
        with place.store.write() as session:
            changes["labels deleted"] = labels.delete(session, projects.lock(session, project.id), gone)
    return changes


def _refresh_classes(place: Workplace, project: Project, settings: ProjectSettings) -> Counter[str]:
    """Follows a labelling config that was edited; one that can no longer be learnt leaves the old classes in place."""
    try:
        found = read_config(settings.label_config)
    except UnsupportedConfig as error:
        log.warning("project %s: %s", project.id, error)
        return Counter()
    if found == classes_of(project):
        return Counter()
    with place.store.write() as session:
        stored = projects.lock(session, project.id)
        stored.control, stored.target, stored.field = found.control, found.target, found.field
        stored.classes = list(found.classes)
    project.control, project.target, project.field = found.control, found.target, found.field
    project.classes = list(found.classes)
    return Counter({"labelling config read again": 1})


def _restore_connection(project: Project, studio: StudioProject, settings: ProjectSettings) -> Counter[str]:
    """The ML backend, the webhook and the number of annotations a task, as connecting made them."""
    repaired: Counter[str] = Counter()
    if not any(str(row["url"]).rstrip("/") == project.backend_url for row in connection.backends(studio)):
        connection.add_backend(studio, project.backend_url, project.secret)
        repaired["ML backend restored"] = 1
    rows = connection.webhooks(studio, project.backend_url)
    header = {connection.SECRET_HEADER: project.secret}
    if len(rows) != 1 or not rows[0]["is_active"] or rows[0]["headers"] != header:
        connection.set_webhook(studio, project.backend_url, project.secret)
        repaired["webhook restored"] = 1
    if settings.maximum_annotations != 1:
        studio.change(maximum_annotations=1)
        repaired["annotations per task restored"] = 1
    return repaired


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
    with place.store.read() as session:
        newest = rounds.latest(session, project)
    if newest is None or newest.number != current.number:
        return Counter()  # published while we looked
    surface(place, project, current.number)
    return Counter({"queue restored": 1})
