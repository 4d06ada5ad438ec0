"""What programs ask for, in JSON: the projects, what each is doing, and its estimates."""

from __future__ import annotations

from typing import Any, cast

from flask import Blueprint, current_app, request
from sqlalchemy.orm import Session
from werkzeug.exceptions import BadRequest, NotFound

from backend.plain import plain
from jobs import estimates
from jobs.status import all_projects, project_status
from jobs.workplace import Workplace
from store import projects
from store.projects import UnknownProject
from store.tables import Project

api = Blueprint("api", __name__, url_prefix="/api")


@api.get("/projects")
def all_of_them() -> dict[str, Any]:
    return {"projects": plain(all_projects(_place()))}


@api.get("/projects/<int:project_id>")
def one(project_id: int) -> dict[str, Any]:
    with _place().store.snapshot() as session:
        return cast(dict[str, Any], plain(project_status(session, _project(session, project_id))))


@api.get("/projects/<int:project_id>/estimates")
def estimates_of(project_id: int) -> dict[str, Any]:
    half_width, target = _share("half_width"), _share("target")
    with _place().store.snapshot() as session:
        project = _project(session, project_id)
        found = estimates.of_project(session, project, half_width=half_width or estimates.HALF_WIDTH, target=target)
    return cast(dict[str, Any], plain(found))


def _place() -> Workplace:
    return cast(Workplace, current_app.extensions["workplace"])


def _project(session: Session, project_id: int) -> Project:
    try:
        return projects.by_id(session, project_id)
    except UnknownProject as error:
        raise NotFound(f"{error}; /api/projects lists those there are") from error


def _share(name: str) -> float | None:
    """A number between 0 and 1 from the address; None where it is not given."""
    text = request.args.get(name)
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.0 < number < 1.0:
        raise BadRequest(f"{name} is {text[:40]!r}: expected a number between 0 and 1, such as 0.02 or 0.95")
    return number
