"""How much there is of everything in the connected projects, all of them counted at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Integer, Select, case, cast, func, select
from sqlalchemy.orm import Session

from store import rounds
from store.tables import Label, Project, Round, Subset, Task


@dataclass(frozen=True)
class Labels:
    """Those that can be learnt, by what they came from, and the skips."""

    project_id: int
    asked: int
    """A draw asked for them."""
    manual: int
    """An annotator made them although no draw asked for them."""
    imported: int
    """They came with their tasks."""
    skipped: int


@dataclass(frozen=True)
class Tasks:
    project_id: int
    there: int
    set_aside: int


@dataclass(frozen=True)
class Rounds:
    project_id: int
    subset: str
    """Empty for the rounds that annotators answer."""
    state: str
    rounds: int


@dataclass(frozen=True)
class CurrentModel:
    project_id: int
    version: str
    examples: int
    created_at: datetime


def labels(session: Session) -> list[Labels]:
    """In one pass along an index; to group by where labels came from would sort them all."""
    asked, came = Label.draw_id.is_not(None), Label.imported
    rows = session.execute(
        select(
            Label.project_id,
            func.count(case((asked, Label.class_name))),
            func.count(case((~asked & ~came, Label.class_name))),
            func.count(case((~asked & came, Label.class_name))),
            func.sum(cast(Label.skipped, Integer)),
        )
        .where(Label.project_id.in_(_connected()), ~Label.deleted)
        .group_by(Label.project_id)
    )
    return [Labels(*row) for row in rows]


def tasks(session: Session) -> list[Tasks]:
    rows = session.execute(
        select(Task.project_id, func.count(), func.count(Task.problem))
        .where(Task.project_id.in_(_connected()), ~Task.gone)
        .group_by(Task.project_id)
    )
    return [Tasks(*row) for row in rows]


def rounds_by_state(session: Session) -> list[Rounds]:
    rows = session.execute(
        select(Round.project_id, func.coalesce(Subset.name, ""), Round.state, func.count())
        .outerjoin(Subset, Round.subset_id == Subset.id)
        .where(Round.project_id.in_(_connected()))
        .group_by(Round.project_id, Subset.name, Round.state)
    )
    return [Rounds(project_id, subset, str(state), count) for project_id, subset, state, count in rows]


def last_labelled(session: Session, project: Project, most: int) -> list[datetime]:
    """When the newest annotations were made that did not come with their tasks; they have the highest ids, so an index
    leads to them."""
    newest = select(Label.created_at).where(Label.project_id == project.id, ~Label.imported)
    return list(session.scalars(newest.order_by(Label.annotation_id.desc()).limit(most)))


def current_models(session: Session, projects: Sequence[Project]) -> list[CurrentModel]:
    found = [rounds.current_model(session, project) for project in projects]
    return [CurrentModel(m.project_id, m.version, m.examples, m.created_at) for m in found if m is not None]


def _connected() -> Select[int]:
    return select(Project.id).where(Project.connected)
