"""Scripted annotators who work as people do in the web page, keep a book of what they did, and survive a server that
is killed under them."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import requests

from backend.demo.annotator import region, submission

SKIPS, MISTAKES, EDITS, DELETIONS = 0.03, 0.05, 0.05, 0.02
REQUEST_SECONDS = 60
PAUSE_SECONDS = 0.4


@dataclass
class Entry:
    """An annotation as its author believes it to stand in Label Studio."""

    task: int
    choice: str | None
    """None for a skip."""
    deleted: bool = False


@dataclass
class Book:
    """What all annotators did, for everybody to see."""

    entries: dict[int, Entry] = field(default_factory=dict)
    in_hand: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(DEEDS, 0))
    seconds: dict[str, float] = field(default_factory=dict)
    """The slowest request of each kind that was answered."""
    refused: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, deed: str) -> None:
        with self.lock:
            self.counts[deed] += 1

    def answered(self) -> set[int]:
        with self.lock:
            done = {entry.task for entry in self.entries.values() if not entry.deleted}
            return done | set(self.in_hand.values())


DEEDS = ("labels", "skips", "edits", "deletions", "lost answers", "found kept")


@dataclass
class Person:
    """One logged-in user who presses "Label All Tasks"."""

    name: str
    url: str
    project: int
    session: requests.Session
    truth: Callable[[Mapping[str, Any]], str]
    classes: str
    book: Book
    ready: Callable[[], bool]
    """Whether there is anything in the queue; if not, it is time for a break."""
    seed: int
    stop: threading.Event = field(default_factory=threading.Event)
    failure: Exception | None = None

    def __post_init__(self) -> None:
        self.user = self.session.get(f"{self.url}/api/current-user/whoami", timeout=REQUEST_SECONDS).json()["id"]
        self._random = random.Random(self.seed)  # noqa: S311
        self._own: dict[int, str] = {}
        """Own labels that are still there, with the true class."""

    def start(self) -> threading.Thread:
        thread = threading.Thread(target=self._work, name=self.name, daemon=True)
        thread.start()
        return thread

    def _work(self) -> None:
        try:
            while not self.stop.is_set():
                if not self.ready() or not self._label_one():
                    self.stop.wait(PAUSE_SECONDS)
                    continue
                chance = self._random.random()
                if chance < EDITS:
                    self._edit_one()
                elif chance < EDITS + DELETIONS:
                    self._delete_one()
        except Exception as error:  # noqa: BLE001 - told by whoever looks after the threads
            self.failure = error

    def _label_one(self) -> bool:
        task = self._next_task()
        if task is None:
            return False
        self.book.in_hand[self.name] = task["id"]
        try:
            started = datetime.now(UTC)
            true = self.truth(task["data"])
            skip = self._random.random() < SKIPS
            mistaken = self._random.random() < MISTAKES
            choice = None if skip else self._random.choice(self.classes) if mistaken else true
            kept = self._submit(task, choice, started)
            if kept is None:
                return False
            with self.book.lock:
                self.book.entries[kept] = Entry(task["id"], choice)
            self.book.count("skips" if skip else "labels")
            if not skip:
                self._own[kept] = true
            return True
        finally:
            del self.book.in_hand[self.name]

    def _next_task(self) -> dict[str, Any] | None:
        answer = self._insist("POST", f"/api/dm/actions?id=next_task&project={self.project}", "next task", self._who())
        if answer.status_code == requests.codes.not_found:
            return None
        answer.raise_for_status()
        task: dict[str, Any] = answer.json()
        return task

    def _submit(self, task: Mapping[str, Any], choice: str | None, started: datetime) -> int | None:
        """The new annotation's id. A submit whose answer was lost is looked for before it is sent again."""
        body = submission(self.project, task, [region(choice)] if choice else [], started)
        if choice is None:
            body["was_cancelled"] = True
        path = f"/api/tasks/{task['id']}/annotations"
        for answer in self._tries("POST", f"{path}?project={self.project}", "submit", body):
            if answer is None:
                self.book.count("lost answers")
                kept = self._find(path, body["result"])
                if kept is not None:
                    self.book.count("found kept")
                    return kept
            elif answer.ok:
                return int(answer.json()["id"])
            else:
                self.book.refused.append(f"HTTP {answer.status_code}: {answer.text[:200]}")
                return None
        raise AssertionError("unreachable")

    def _find(self, path: str, result: list[dict[str, Any]]) -> int | None:
        """The annotation of a submit, known by its region's id; a skip has none, but nobody skips a task twice."""
        listed = self._insist("GET", f"{path}/", "look", None)
        listed.raise_for_status()
        for one in listed.json():
            author = one["completed_by"]["id"] if isinstance(one["completed_by"], dict) else one["completed_by"]
            mine = author == self.user and one["id"] not in self.book.entries
            if mine and [r["id"] for r in one["result"]] == [r["id"] for r in result]:
                return int(one["id"])
        return None

    def _edit_one(self) -> None:
        """Puts a wrong answer right; where none is wrong, presses "Update" on one that is right."""
        if not self._own:
            return
        wrong = [number for number, true in self._own.items() if self.book.entries[number].choice != true]
        annotation = self._random.choice(sorted(wrong or self._own))
        entry, choice = self.book.entries[annotation], self._own[annotation]
        body = {"lead_time": 3.1, "result": [region(choice)], "draft_id": 0, "project": str(self.project)}
        body |= {"parent_prediction": None, "parent_annotation": None}
        path = f"/api/annotations/{annotation}?taskID={entry.task}&project={self.project}"
        self._insist("PATCH", path, "edit", body).raise_for_status()
        entry.choice = choice
        self.book.count("edits")

    def _delete_one(self) -> None:
        if not self._own:
            return
        annotation = self._random.choice(sorted(self._own))
        answer = self._insist("DELETE", f"/api/annotations/{annotation}/", "delete", None)
        if answer.status_code != requests.codes.not_found:
            answer.raise_for_status()
        self.book.entries[annotation].deleted = True
        del self._own[annotation]
        self.book.count("deletions")

    def _who(self) -> dict[str, str]:
        return {"project": str(self.project)}

    def _insist(self, method: str, path: str, kind: str, body: Mapping[str, Any] | None) -> requests.Response:
        """For what may be sent twice: until there is an answer."""
        return next(answer for answer in self._tries(method, path, kind, body) if answer is not None)

    def _tries(
        self, method: str, path: str, kind: str, body: Mapping[str, Any] | None
    ) -> Iterator[requests.Response | None]:
        """One try after another; None where it is not known what became of it."""
        while True:
            began = time.monotonic()
            try:
                answer = self.session.request(method, self.url + path, json=body, timeout=REQUEST_SECONDS)
            except requests.RequestException:
                yield None
            else:
                took = time.monotonic() - began
                self.book.seconds[kind] = max(self.book.seconds.get(kind, 0.0), took)
                yield None if answer.status_code >= 500 else answer
            time.sleep(PAUSE_SECONDS)
