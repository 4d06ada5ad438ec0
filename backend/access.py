"""Who is calling: the project whose secret the request shows."""

from __future__ import annotations

import hashlib
import hmac
import math
import threading
import time
from collections.abc import Callable, Iterable
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
ARRIVED_AT = "iwes.arrived_at"
"""Where a web server that begins many requests one after the other says when each had come. Of those with secrets that
nobody knows, the first has the projects read, and the others find that they were read since."""


class AccessDenied(PermissionError):
    """The request shows no secret of a connected project."""


@dataclass(frozen=True)
class _Known:
    project: Project
    since: float
    """When its reading began."""


class Callers:
    """The projects that Label Studio may call for. Webhooks come by the hundreds in a second, so a project is kept at
    hand by the digest of its secret, and read again only when it is old; where nothing is known of a digest, all are
    read. How long that takes tells nothing of any secret. Safe to share between threads."""

    def __init__(self, store: Store, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._reading = threading.Lock()
        self._known: dict[bytes, _Known] = {}
        self._all_since = -math.inf

    def project(self, secret: str, asked_at: float | None = None) -> Project | None:
        """Whose secret it is: of the projects that there were when it was asked, which is now if not said otherwise."""
        digest, asked_at = _digest(secret), self._clock() if asked_at is None else asked_at
        known = self._trusted(digest, asked_at)
        if known is None:
            with self._reading:  # many who do not know enough wait for one who reads
                known = self._trusted(digest, asked_at) or self._read(digest, asked_at)
        return known.project if known and hmac.compare_digest(known.project.secret, secret) else None

    def _trusted(self, digest: bytes, asked_at: float) -> _Known | None:
        known = self._known.get(digest)
        return known if known is not None and known.since >= asked_at - TRUSTED_SECONDS else None

    def _read(self, digest: bytes, asked_at: float) -> _Known | None:
        since, old = self._clock(), self._known.pop(digest, None)
        with self._store.read() as session:
            if old is not None and (project := session.get(Project, old.project.id)) is not None:
                self._keep([project], since)
            # one that was connected a moment ago, perhaps by another process, calls at once
            if digest not in self._known and self._all_since < asked_at:
                self._known, self._all_since = {}, since
                self._keep(projects.all_known(session), since)
        return self._known.get(digest)

    def _keep(self, found: Iterable[Project], since: float) -> None:
        self._known |= {_digest(project.secret): _Known(project, since) for project in found if _may_call(project)}


def _may_call(project: Project) -> bool:
    """Also one that is just being connected or disconnected: Label Studio calls us in the midst of both."""
    return project.connected or bool(project.before)


def calling_project(request: Request) -> Project:
    """Label Studio shows the secret in two ways: as a header of its webhooks, and as the password of all other calls.
    Raises AccessDenied."""
    secret = _shown(request)
    callers = cast(Callers, current_app.extensions["callers"])
    arrived_at = request.environ.get(ARRIVED_AT)
    project = callers.project(secret, arrived_at) if secret.isascii() and 0 < len(secret) <= LONGEST else None
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
