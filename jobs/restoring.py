"""Puts back what connecting and publishing made in Label Studio, wherever somebody changed it by hand."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable

from jobs.intake import classes_of
from jobs.publish import Surfaced, serve_queue, weights_of, write_beside
from jobs.workplace import Workplace
from store import projects, rounds, subsets
from store.tables import Draw, Project, RoundState
from studio import connection, queue
from studio.errors import UnsupportedConfig
from studio.labels import read_config
from studio.projects import ProjectSettings, StudioProject

log = logging.getLogger(__name__)


def classes(place: Workplace, project: Project, settings: ProjectSettings) -> Counter[str]:
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


def attachment(project: Project, studio: StudioProject, settings: ProjectSettings) -> Counter[str]:
    """The ML backend, the webhook and the number of annotations a task, as connecting made them."""
    repaired: Counter[str] = Counter()
    if not any(str(row["url"]).rstrip("/") == project.backend_url for row in connection.backends(studio)):
        connection.add_backend(studio, project.backend_url, project.secret)
        repaired["ML backend restored"] = 1
    if not connection.webhook_is_ours(studio, project.backend_url, project.secret):
        connection.set_webhook(studio, project.backend_url, project.secret)
        repaired["webhook restored"] = 1
    if settings.maximum_annotations != 1:
        studio.change(maximum_annotations=1)
        repaired["annotations per task restored"] = 1
    return repaired


def served_queue(place: Workplace, project: Project, studio: StudioProject) -> Counter[str]:
    """Annotators must be on the newest round's queue, each of its tasks once. A round that is being published at this
    moment is left to its own job: until that says it is done, either queue may be the right one."""
    with place.store.read() as session:
        current = rounds.latest(session, project)
        if current is None or current.state == RoundState.DRAWN:
            return Counter()
        there = sum(not draw.task.gone for draw in current.draws)
    settings = studio.settings()
    served = settings.model_version == current.queue and settings.sampling == queue.SAMPLING
    if not there or (served and queue.versions(studio).get(current.queue) == there):
        return Counter()
    with place.store.read() as session:
        newest = rounds.latest(session, project)
    if newest is None or newest.number != current.number:
        return Counter()  # published while we looked
    entries = serve_queue(place, project, studio, current.number)
    return Counter({"queue restored": int(not served), "queue entries restored": entries})


def weights(place: Workplace, project: Project, studio: StudioProject, studio_ids: Iterable[int]) -> Counter[str]:
    """Of these tasks, whose data were just read, those whose weights were overwritten get them back. Only labelled
    ones: to write to a task that is being labelled can make Label Studio lose count of its annotation, and it will be
    looked at again once it is."""
    tasks = list(studio_ids)
    with place.store.read() as session:
        asked = rounds.published_draws(session, project, tasks)
        shown = [s for s in subsets.all_of(session, project) if s.published_round is not None]
        selected = [draw for subset in shown for draw in subsets.members_among(session, subset, tasks)]
    right = {draw.task_id for draw in (*asked, *selected) if _beside(draw).is_in(draw.task.data)}
    lost = [_beside(draw) for draw in asked if draw.task_id not in right]
    spoilt = {draw.round.subset_id for draw in selected if draw.task_id not in right}
    write_beside(studio, lost)
    with place.store.write() as session:
        for subset in shown:
            if subset.id in spoilt:
                subsets.published(session, subsets.by_id(session, subset.id), None)  # so that it is shown anew
    return Counter({"weights restored": len(lost), "subsets to be shown again": len(spoilt)})


def _beside(draw: Draw) -> Surfaced:
    """A task of several subsets carries the weights of the one shown last; those of any are right."""
    return Surfaced(draw.task.studio_id, weights_of(draw))
