"""Who is calling: the project whose secret the request shows."""

from __future__ import annotations

from flask import Request

from jobs.workplace import Workplace
from store import projects
from store.tables import Project
from studio.connection import SECRET_HEADER


class AccessDenied(PermissionError):
    """The request shows no secret of a connected project."""


def calling_project(place: Workplace, request: Request) -> Project:
    """Label Studio shows the secret in two ways: as a header of its webhooks, and as the password of all other calls.
    The secret is looked up by its value in an index, so there is no comparison whose time tells anything."""
    shown = request.headers.get(SECRET_HEADER) or (request.authorization and request.authorization.password) or ""
    with place.store.read() as session:
        project = projects.by_secret(session, shown)
    if project is None:
        raise AccessDenied("this call shows no secret of a connected project; connect it with `iwes connect`")
    return project
