"""Whether this backend is well, limps or is down: told in milliseconds, however long a dead part takes to say nothing.

While the store answers, labels can be taken in, and Label Studio is told UP whatever else is wrong. What is wrong then
costs time, not labels, and is told beside it.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from math import inf
from pathlib import Path
from typing import Any

from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from jobs import queues
from jobs.backlog import backlogs
from jobs.workplace import Workplace
from store import counts, projects
from store.tables import Project, now

FRESH_SECONDS = 5.0
OLD_SECONDS = 30.0
"""What was found is asked for again after the first of these, and still told meanwhile until the second."""
LIMIT_SECONDS = 0.3
"""Then whoever asks waits, but no longer than this; Label Studio gives /health one second in all."""
PATIENCE_SECONDS = 5.0
"""A check that takes longer has failed."""
RECONCILES_MISSED = 3
LEAST_GIGABYTES = 0.5
SILENT_LABELS = 3
SILENT_FOR = timedelta(minutes=1)
SILENT_SINCE = timedelta(hours=1)
"""How many labels, made how long after the last webhook and how lately, show that webhooks do not arrive."""


@dataclass(frozen=True)
class Report:
    up: bool
    problems: list[str]
    """For anybody's eyes: without addresses, titles or secrets."""

    @property
    def status(self) -> int:
        return 200 if self.up else 503

    def as_dict(self) -> dict[str, Any]:
        state = "down" if not self.up else "degraded" if self.problems else "ok"
        return {
            "status": "UP" if self.up else "DOWN",
            "model_class": "IWeS",
            "state": state,
            "problems": self.problems,
        }


class Health:
    def __init__(self, place: Workplace) -> None:
        self._place = place
        self._store = _Check(lambda: list(_of_store(place)))
        self._redis = _Check(lambda: list(_of_redis(place)))

    def report(self) -> Report:
        deadline = time.monotonic() + LIMIT_SECONDS
        for check in (self._store, self._redis):
            check.begin()
        store, redis = self._store.found(deadline), self._redis.found(deadline)
        if store is None:
            return Report(False, ["the store does not answer: labels cannot be taken in"])
        if redis is None:
            redis = ["Redis does not answer: labels are taken in, but no job runs until it is back"]
        return Report(True, [*store, *redis])


@dataclass
class _Check:
    """Asks in a thread of its own. Until it has first been answered, all is taken to be well."""

    ask: Callable[[], list[str]]
    _found: list[str] | None = field(default_factory=list)
    """None where it could not be asked."""
    _found_at: float = -inf
    _asked_at: float = -inf
    _asking: threading.Event | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> None:
        with self._lock:
            moment = time.monotonic()
            if self._asking is None and moment - self._found_at >= FRESH_SECONDS:
                self._asking, self._asked_at = threading.Event(), moment
                threading.Thread(target=self._run, args=(self._asking,), name="health", daemon=True).start()

    def found(self, deadline: float) -> list[str] | None:
        with self._lock:
            moment, asking = time.monotonic(), self._asking
            if asking is not None and moment - self._asked_at >= PATIENCE_SECONDS:
                return None
            if asking is None or moment - self._found_at < OLD_SECONDS:
                return self._found
        asking.wait(deadline - moment)
        return self._found

    def _run(self, asking: threading.Event) -> None:
        found = None
        try:
            with suppress(SQLAlchemyError, RedisError, OSError):
                found = self.ask()
        finally:
            with self._lock:
                self._found, self._found_at, self._asking = found, time.monotonic(), None
            asking.set()


def _of_store(place: Workplace) -> Iterator[str]:
    file = place.store.engine.url.database if place.store.is_sqlite else None
    if file is not None and not Path(file).exists():
        raise FileNotFoundError(file)  # a connection that is open goes on as if nothing had happened
    longest = timedelta(seconds=RECONCILES_MISSED * max(place.settings.reconcile_seconds, 300))
    with place.store.read() as session:
        for project in projects.connected(session):
            if project.reconciled_at is None or queues.long_ago(project.reconciled_at, longest):
                minutes = longest.total_seconds() / 60
                yield f"project {project.id} was not compared with Label Studio for more than {minutes:.0f} minutes"
            if _webhooks_are_silent(session, project):
                yield f"project {project.id} gets labels but no webhooks: they are only found by reconcile"
    if place.settings.home.exists() and shutil.disk_usage(place.settings.home).free < LEAST_GIGABYTES * 2**30:
        yield f"less than {LEAST_GIGABYTES:g} GB is left on the disk of IWES_HOME"


def _webhooks_are_silent(session: Session, project: Project) -> bool:
    """Whether annotators have labelled lately, and no webhook said so."""
    moments = counts.last_labelled(session, project, SILENT_LABELS)
    heard = project.webhook_seen_at or project.created_at
    since = max(heard + SILENT_FOR, now() - SILENT_SINCE)
    return len(moments) == SILENT_LABELS and min(moments) > since


def _of_redis(place: Workplace) -> Iterator[str]:
    queues = backlogs(place.redis)
    for name, backlog in queues.items():
        if not backlog.workers:
            yield f"no worker serves the queue {name}; jobs that wait there: {backlog.waiting}"
    failed = sum(backlog.failed_lately for backlog in queues.values())
    if failed:
        yield f"{failed} {'job' if failed == 1 else 'jobs'} failed for good within a day: `iwes status` says why"
