"""Annotators who label side by side, as people in front of the web page do, with a clock running while they wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import requests

from backend.demo.annotator import Annotator
from benchmarks.loop.progress import say
from benchmarks.loop.waits import Wait

IDLE_SECONDS = 0.5
TOLD_EVERY = 50

Result = TypeVar("Result")


@dataclass
class Crowd:
    """What came of the labels."""

    waits: list[Wait] = field(default_factory=list)
    """One for each label."""
    refused: int = 0
    """Requests that failed: Label Studio's SQLite was busy for too long, or nobody answered."""
    seconds: float = 0.0
    other_cores: float = 0.0
    """Taken meanwhile by what this benchmark did not start."""


def label(people: Sequence[Annotator], labels: int, *, look: float, seconds: float) -> Crowd:
    """Until there are so many labels, or the time is over: what has been begun then is brought to its end."""
    book = _Book(labels, time.monotonic() + seconds)
    began = time.monotonic()
    threads = [threading.Thread(target=_Person(one, book, look).work, daemon=True) for one in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if book.failure is not None:
        raise book.failure
    book.crowd.seconds = time.monotonic() - began
    return book.crowd


class _Book:
    """What all of them share."""

    def __init__(self, labels: int, ends: float) -> None:
        self.crowd = Crowd()
        self.failure: Exception | None = None
        self._left, self._ends = labels, ends
        self._lock = threading.Lock()

    @property
    def over(self) -> bool:
        return time.monotonic() > self._ends or self.failure is not None

    def take(self) -> bool:
        """One of the labels that are left."""
        with self._lock:
            if self._left == 0 or self.over:
                return False
            self._left -= 1
            return True

    def note(self, wait: Wait) -> None:
        with self._lock:
            self.crowd.waits.append(wait)
            if len(self.crowd.waits) % TOLD_EVERY == 0:
                say(f"  {len(self.crowd.waits)} labels")

    def refused(self) -> None:
        with self._lock:
            self.crowd.refused += 1


class _Person:
    def __init__(self, annotator: Annotator, book: _Book, look: float) -> None:
        self._annotator, self._book, self._look = annotator, book, look

    def work(self) -> None:
        try:
            while self._book.take():
                wait = self._label()
                if wait is not None:
                    self._book.note(wait)
        except Exception as error:  # noqa: BLE001 - raised again by whoever started the threads
            self._book.failure = error

    def _label(self) -> Wait | None:
        """A task, a look at it, an answer. Whether Label Studio has kept an answer that it refused, it knows itself: if
        not, it hands out the same task again."""
        asking = submitting = 0.0
        while not self._book.over:
            began = time.perf_counter()
            task = self._unless_refused(self._annotator.next_task)
            if task is None:  # others hold what is left of the queue, or the request was refused
                time.sleep(IDLE_SECONDS)
                asking += time.perf_counter() - began
                continue
            asking += time.perf_counter() - began
            started = datetime.now(UTC)
            time.sleep(self._look)
            choice = self._annotator.truth(task["data"])
            began = time.perf_counter()
            kept = self._unless_refused(partial(self._submit, task, choice, started))
            submitting += time.perf_counter() - began
            if kept:
                return Wait(asking, submitting)
        return None

    def _submit(self, task: dict[str, Any], choice: str, started: datetime) -> bool:
        self._annotator.submit(task, choice, started)
        return True

    def _unless_refused(self, request: Callable[[], Result]) -> Result | None:
        try:
            return request()
        except (requests.ConnectionError, requests.Timeout):
            pass
        except requests.HTTPError as error:
            if error.response.status_code < 500:
                raise
        self._book.refused()
        return None
