"""How every job runs: in a workplace of its own, telling why it failed, and ending with what is due next."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TypeVar

from redis.exceptions import RedisError
from rq import get_current_job

from jobs import job_log, logs, measures
from jobs.loop import advance
from jobs.workplace import Workplace, workplace
from store import database, projects
from studio.errors import ServerFault, Unreachable

Result = TypeVar("Result")
Listener = Callable[[str, object], None]

AWAY = (Unreachable, ServerFault, *database.AWAY, RedisError)
"""What did not answer, or had no time: no fault of the job's. It is tried again for as long as that takes."""

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def run(work: Callable[..., Result], project_id: int, *arguments: int) -> Result | None:
    """Does nothing for a project that was disconnected since the job was enqueued."""
    job = get_current_job()
    facts = {"project": project_id, **(logs.of_job(job.id) if job else {})}
    kind = work.__module__.rpartition(".")[2]
    with (
        logs.about(**facts),
        _telling_failure(),
        workplace() as place,
        job_log.kept(place.redis, job.id if job else None),
        _counted(place, kind),
    ):
        with place.store.read() as session:
            if not projects.by_id(session, project_id).connected:
                return None
        result = work(place, project_id, *arguments)
        advance(place, project_id)
        return result


@contextmanager
def _counted(place: Workplace, kind: str) -> Iterator[None]:
    began, outcome = time.monotonic(), "killed"
    try:
        yield
        outcome = "finished"
    except Exception:
        job = get_current_job()
        outcome = "retried" if job is not None and job.should_retry else "failed"
        raise
    finally:
        measures.count_job(place.redis, kind, outcome, time.monotonic() - began)


@contextmanager
def _telling_failure() -> Iterator[None]:
    """RQ forgets the error of a job that is to be retried; people want to know what it is waiting for."""
    try:
        yield
    except Exception as error:
        note("away", isinstance(error, AWAY))
        note("reason", logs.without_secrets(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"))
        raise


def note(name: str, value: object) -> None:
    """Leaves a word in the running job for `iwes status`, and with whoever listens in this process; else nowhere. A
    Redis that is away for a moment costs the word, not the work."""
    listener = _listener.get()
    if listener is not None:
        listener(name, value)
    job = get_current_job()
    if job is not None:
        job.meta[name] = value
        with suppress(RedisError, OSError):
            job.save_meta()  # type: ignore[no-untyped-call]


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Lets work that runs here, and not in a job, be listened to."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
