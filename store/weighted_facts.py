"""What can be told of a weighted training set without making its rows: how many, which state, and what is missing."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Text, cast, func, select
from sqlalchemy.orm import Session

from store import pool
from store.tables import Draw, Label, Project, Task
from store.weighted_set import CHUNK, LABELLED, UNLABELLED, Part, labels_of, sequence, training_subset


@dataclass(frozen=True)
class Doubts:
    """What a set as of an earlier moment cannot tell, for the store keeps no history of labels."""

    changed: int
    """Rows whose label was changed since: they say what it says now."""
    taken_back: int
    """Labels made by then that are deleted now, and left out, whether or not they were there then."""


def most(session: Session, project: Project, part: Part) -> int:
    """How many rows there are at most, without looking at each."""
    tasks = labels_of([Task.id], project, part, training_subset(session, project, part)).order_by(None).distinct()
    return session.scalar(select(func.count()).select_from(tasks.subquery())) or 0


def fingerprint(session: Session, project: Project, part: Part) -> str:
    """Of all that the rows are made of, much sooner than by making them: another one, another set. Draws and rounds
    never change once they are stored, so their ids stand for them."""
    training = training_subset(session, project, part)
    numbers = (Task.studio_id, Label.annotation_id, Label.ground_truth, Label.imported, Label.annotator)
    read = (*numbers, Label.created_at, Label.updated_at, Draw.id, Label.class_name, cast(Task.data, Text))
    together = func.json_array if session.get_bind().dialect.name == "sqlite" else func.json_build_array
    statement = labels_of([cast(together(*read), Text)], project, part, training)
    digest = hashlib.sha256()
    found = session.connection().execute(statement, execution_options={"yield_per": CHUNK})
    for some in found.scalars().partitions():
        digest.update("\n".join(some).encode(errors="surrogatepass"))
    for whose in (None, training) if training else (None,):
        digest.update(repr([found.id for found in sequence(session, project, whose, part)]).encode())
    return digest.hexdigest()


def sizes(session: Session, project: Project) -> dict[str, int]:
    """How many tasks each stratum has that can be used, labelled or not: what its rows are to stand for."""
    there = (
        select(func.count()).select_from(Task).where(Task.project_id == project.id, ~Task.gone, Task.problem.is_(None))
    )
    whole = session.scalar(there) or 0
    labelled = pool.came_labelled_ids(project).where(Task.problem.is_(None)).distinct()
    came = session.scalar(select(func.count()).select_from(labelled.subquery())) or 0
    return {LABELLED: came, UNLABELLED: whole - came}


def skipped(session: Session, project: Project, part: Part) -> dict[int, int]:
    """How many of the tasks that a round asked for were skipped, by the round's id."""
    skips = (
        select(Draw.round_id, func.count(Label.task_id.distinct()))
        .join(Label, Label.draw_id == Draw.id)
        .where(Label.project_id == project.id, Label.skipped, ~Label.deleted)
        .group_by(Draw.round_id)
    )
    if part.as_of is not None:
        skips = skips.where(Label.created_at <= part.as_of)
    return {round_id: count for round_id, count in session.execute(skips)}


def doubts(session: Session, project: Project, moment: datetime) -> Doubts:
    made = select(func.count()).select_from(Label).where(Label.project_id == project.id, Label.created_at <= moment)
    changed = made.where(~Label.deleted, Label.class_name.is_not(None), Label.updated_at > moment)
    return Doubts(
        changed=session.scalar(changed) or 0,
        taken_back=session.scalar(made.where(Label.deleted)) or 0,
    )
