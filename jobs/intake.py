"""Takes in what Label Studio reports: one transaction per message, then whatever that made due."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sqlalchemy.orm import Session

from jobs.loop import advance
from jobs.workplace import Workplace
from store import labels, pool, projects, rounds
from store.tables import Project, now
from studio.labels import ImageClasses
from studio.messages import Annotation, Event


def take(workplace: Workplace, project_id: int, event: Event) -> list[str]:
    """Stores what a webhook says and closes the round if that was its last label. Returns the jobs that are due then.
    Nothing here calls Label Studio back: it is waiting for our answer inside the annotator's own request."""
    with workplace.store.write() as session:
        project = projects.lock(session, project_id)
        project.webhook_seen_at = now()
        pool.forget(session, project, event.deleted_tasks)
        labels.delete(session, project, event.deleted_annotations)
        pool.mirror(session, project, event.tasks)
        record_annotations(session, project, event.annotations)
        rounds.close_if_complete(session, project)
    return advance(workplace, project_id)


def start_training(workplace: Workplace, project_id: int) -> list[str]:
    """Closes the open round with the labels it has. Pressed again while it trains, it names the same job."""
    with workplace.store.write() as session:
        rounds.close_early(session, projects.lock(session, project_id))
    return advance(workplace, project_id, even_if_failed=True)


def record_annotations(
    session: Session,
    project: Project,
    annotations: Iterable[Annotation],
    *,
    imported: Callable[[Annotation], bool] = lambda annotation: False,
) -> int:
    """Records annotations of mirrored tasks (others are left to reconcile); returns how many were new or changed."""
    annotations = list(annotations)
    tasks = pool.by_studio_id(session, project, {a.task_id for a in annotations})
    return sum(
        labels.record(
            session, project, tasks[annotation.task_id], as_label(project, annotation, imported=imported(annotation))
        )
        for annotation in annotations
        if annotation.task_id in tasks
    )


def as_label(project: Project, annotation: Annotation, *, imported: bool = False) -> labels.NewLabel:
    class_name, problem = None, None
    if not annotation.skipped:
        class_name, problem = classes_of(project).class_of(annotation.result)
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
