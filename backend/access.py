"""Who is calling: the project whose secret the request shows."""

from __future__ import annotations

import hashlib
import hmac
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from flask import Request, current_app
from werkzeug.datastructures import Authorization

from jobs import logs
from store import projects
from store.database import Store
from store.tables import Project
from studio.connection import SECRET_HEADER

TRUSTED_SECONDS = 2.0
"""How long a secret that opens nothing any more may still be taken, by a process that has not heard of it."""
LONGEST = 256  # characters; ours have 43


class AccessDenied(PermissionError):
    """The request shows no secret of a connected project."""


@dataclass(frozen=True)
class _Known:
    projects: Mapping[bytes, Project]
    """By the digest of their secret."""
    since: float
    """When its reading began."""

    def find(self, secret: str) -> Project | None:
        """The digest leads to the one project it could be, and how long that takes tells nothing of any secret."""
        project = self.projects.get(_digest(secret))
        return project if project is not None and hmac.compare_digest(project.secret, secret) else None


class Callers:
    """The projects that Label Studio may call for. Webhooks come by the hundreds in a second, so they are kept at hand
    and read again only when they are old or do not know the caller. Safe to share between threads."""

    def __init__(self, store: Store, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._reading = threading.Lock()
        self._known: _Known | None = None

    def project(self, secret: str) -> Project | None:
        asked_at = self._clock()
        project = self._no_older_than(asked_at - TRUSTED_SECONDS).find(secret)
        # one that was connected a moment ago, perhaps by another process, calls at once
        return project or self._no_older_than(asked_at).find(secret)

    def _no_older_than(self, moment: float) -> _Known:
        known = self._known
        if known is not None and known.since >= moment:
            return known
        with self._reading:  # many who do not know enough wait for one who reads
            if self._known is None or self._known.since < moment:
                self._known = self._read()
            return self._known

    def _read(self) -> _Known:
        since = self._clock()
        with self._store.read() as session:
            found = [project for project in projects.all_known(session) if _may_call(project)]
        return _Known({_digest(project.secret): project for project in found}, since)


def _may_call(project: Project) -> bool:
    """Also one that is just being connected or disconnected: Label Studio calls us in the midst of both."""
    return project.connected or bool(project.before)


def calling_project(request: Request) -> Project:
    """Label Studio shows the secret in two ways: as a header of its webhooks, and as the password of all other calls.
    Raises AccessDenied."""
    secret = _shown(request)
    callers = cast(Callers, current_app.extensions["callers"])
    project = callers.project(secret) if secret.isascii() and 0 < len(secret) <= LONGEST else None
    if project is None:
        raise AccessDenied("this call shows no secret of a connected project; connect it with `iwes connect`")
    logs.learn(project=project.id)
    return project


def credentials(request: Request) -> Authorization | None:
    """What the request shows, if anything. Werkzeug fails at signs that are not ASCII."""
    try:
        return request.authorization
    except ValueError:
        return None


def _shown(request: Request) -> str:
    header = request.headers.get(SECRET_HEADER)
    if header is not None:
        return header
    basic = credentials(request)
    return (basic.password or "") if basic is not None and basic.type == "basic" else ""


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
