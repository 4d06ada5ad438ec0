"""How every job runs: in a workplace of its own, telling why it failed, and ending with what is due next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TypeVar

from redis.exceptions import RedisError
from rq import get_current_job

from jobs.loop import advance
from jobs.workplace import Workplace, workplace
from store import projects

Result = TypeVar("Result")
Listener = Callable[[str, object], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def run(work: Callable[..., Result], project_id: int, *arguments: int) -> Result | None:
    """Does nothing for a project that was disconnected since the job was enqueued."""
    with workplace() as place:
        with place.store.read() as session:
            if not projects.by_id(session, project_id).connected:
                return None
        result = _tell_failure(work, place, project_id, *arguments)
        advance(place, project_id)
        return result


def _tell_failure(work: Callable[..., Result], place: Workplace, *arguments: int) -> Result:
    """RQ forgets the error of a job that is to be retried; people want to know what it is waiting for."""
    try:
        return work(place, *arguments)
    except Exception as error:
        note("reason", f"{type(error).__name__}: {error}")
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
