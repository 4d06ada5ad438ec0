"""Projects: finding one, and taking its lock before counting."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import bindparam, select, update
from sqlalchemy.orm import Session

from store.tables import Mode, Project, Subset

_LOCK = select(Project).where(Project.id == bindparam("id")).with_for_update()
_LOCK = _LOCK.execution_options(populate_existing=True)
"""Made once, as are other statements that each webhook needs: to make one costs more than to carry it out."""


LARGEST_ID = 2**31 - 1
"""That a database can be asked for: an address may name any number."""


class UnknownProject(LookupError):
    """No such connected project."""


def by_id(session: Session, project_id: int) -> Project:
    project = session.get(Project, project_id) if project_id <= LARGEST_ID else None
    if project is None:
        raise UnknownProject(f"there is no project {project_id} in the store")
    return project


def lock(session: Session, project_id: int) -> Project:
    """The project's row, held until the transaction ends, so that two processes never count at the same time."""
    project = session.scalar(_LOCK, {"id": project_id})
    if project is None:
        raise UnknownProject(f"there is no project {project_id} in the store")
    return project


def change_mode(session: Session, project_id: int, mode: str) -> Project:
    """From its next step on the project goes on in this mode; so does a subset that was begun by itself."""
    project = lock(session, project_id)
    project.mode = Mode(mode)
    rule = "loss" if mode == Mode.LOSS else "dis"
    session.execute(update(Subset).where(Subset.project_id == project.id, Subset.auto).values(rule=rule))
    return project


def by_address(session: Session, studio_url: str, studio_id: int) -> Project | None:
    return session.scalar(select(Project).where(Project.studio_url == studio_url, Project.studio_id == studio_id))


def connected(session: Session) -> Sequence[Project]:
    return session.scalars(select(Project).where(Project.connected).order_by(Project.id)).all()


def all_known(session: Session) -> Sequence[Project]:
    return session.scalars(select(Project).order_by(Project.id)).all()
