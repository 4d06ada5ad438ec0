"""The projects that webhooks are about: in the backend's store, with tasks mirrored and a round open for labels."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from benchmarks.load import webhooks
from store import pool, rounds
from store.database import Store
from store.tables import Draw, Label, Project, Round, RoundState


def add(store: Store, studio_ids: Sequence[int], *, tasks: int, k: int) -> list[webhooks.Project]:
    """Every task of a project is drawn, and the round closes once k of them are labelled."""
    added = [webhooks.Project(studio_id, secrets.token_urlsafe(32)) for studio_id in studio_ids]
    with store.write() as session:
        for one in added:
            project = _project(session, one, k)
            pool.mirror(session, project, dict(webhooks.task_data(tasks)))
            _open_round(session, project, k)
    return added


def stored(store: Store, first: int, last: int) -> list[int]:
    """The annotations with numbers from first to below last that are labels, once for each time that one is there."""
    numbers = select(Label.annotation_id).where(Label.annotation_id >= first, Label.annotation_id < last)
    with store.read() as session:
        return list(session.scalars(numbers.where(~Label.deleted, Label.class_name.is_not(None))))


def closed(store: Store, studio_ids: Sequence[int]) -> list[int]:
    """The ids in the store of those projects whose round is closed."""
    closed = select(Round.project_id).join(Project, Round.project_id == Project.id)
    with store.read() as session:
        return list(session.scalars(closed.where(Project.studio_id.in_(studio_ids), Round.state == RoundState.CLOSED)))


def _project(session: Session, one: webhooks.Project, k: int) -> Project:
    project = Project(
        studio_url="http://127.0.0.1:1",  # nothing listens there: no Label Studio is needed to take webhooks in
        studio_id=one.studio_id,
        title=f"load {one.studio_id}",
        token="t" * 40,
        secret=one.secret,
        backend_url="http://127.0.0.1:1",
        control="cls",
        target="img",
        field="image",
        classes=["cat", "dog", "bird"],
        seed_size=k,
        k=k,
        cap=2.0,
        floor=0.05,
        reserve=0.5,
        sharpness=1.0,
        network="small-cnn",
        rng_seed=7,
        connected=True,
    )
    session.add(project)
    session.flush()
    return project


def _open_round(session: Session, project: Project, k: int) -> None:
    ids = pool.drawable(session, project, at_least=0)
    draws = [
        Draw(
            task_id=task_id,
            rank=rank,
            reserve=rank >= k,
            position=rank,
            passes=0,
            score=0.5,
            probability=0.5,
            weight=2.0,
            inclusion=0.5,
        )
        for rank, task_id in enumerate(ids)
    ]
    chances = {"cap": 2.0, "floor": 0.05, "reserve": 0.5, "sharpness": 1.0}
    round_ = Round(number=0, rule="ent", wanted=k, batch_size=k, pool_size=len(ids), examined=len(ids), **chances)
    rounds.add(session, project, round_, draws)
    rounds.open_(session, round_)
