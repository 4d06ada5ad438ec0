"""Labels given while trainings run: with the backend, with the official server, and with Label Studio alone.

Each has a project of its own with the same digits, the same people and the same Label Studio, and none of the other
servers runs meanwhile. A training is due after every k labels: the backend's own, by its webhook and its worker, the
draw and the publishing of the next batch included; the official server's by Label Studio's START_TRAINING, or, as its
examples do, with every label.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import requests
from sqlalchemy import select

from backend.embedded.process import Stack
from benchmarks.loop import crowd, official
from benchmarks.loop.crowd import Crowd
from benchmarks.loop.others import Others
from benchmarks.loop.progress import say
from benchmarks.loop.settings import Settings
from benchmarks.loop.studio import Studio
from benchmarks.loop.waits import Wait
from jobs.connect import Options, connect
from jobs.loop import due
from jobs.reconcile import reconcile_project
from jobs.workplace import Workplace
from store import projects, rounds
from store.tables import Label, Project

ALONE, OURS = "alone", "backend"
REST_SECONDS = 120.0


@dataclass(frozen=True)
class Side:
    """Labels given beside one server."""

    name: str
    waits: list[Wait]
    seconds: float
    refused: int
    other_cores: float
    """Taken meanwhile by what this benchmark did not start."""
    annotations: int
    """In Label Studio at the end."""
    trainings: list[float] = field(default_factory=list)
    """Those that came of these labels, in seconds."""
    batches: list[float] = field(default_factory=list)
    """Seconds between a round's last label and its successor's being open, where there are rounds."""
    given_up: int = 0
    """Webhooks that Label Studio gave up, by its own log: not answered within its second."""
    unknown: int | None = None
    """Annotations that the server did not know of when the last was given; None where there is no server."""
    unknown_after: int | None = None
    """And after a reconcile, where there is such a thing."""

    def as_dict(self) -> dict[str, Any]:
        waits = [[round(wait.next, 4), round(wait.submit, 4)] for wait in self.waits]
        return {**asdict(self), "waits": waits}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Side:
        return cls(**{**values, "waits": [Wait(*pair) for pair in values["waits"]]})


@dataclass(frozen=True)
class Beside:
    studio: Studio
    people: Sequence[requests.Session]
    settings: Settings
    stacks: Sequence[Stack]
    """What this benchmark has started."""

    def alone(self) -> Side:
        """What Label Studio itself takes, with nothing connected to it."""
        project = self.studio.project()
        say("labels with Label Studio alone")
        done, _ = self._label(project)
        return self._side(ALONE, project, done)

    def ours(self, place: Workplace) -> Side:
        project = join(place, self.studio, self.settings.k)
        say("labels beside the backend")
        done, given_up = self._label(project.studio_id, place.settings.port)
        there = self.studio.annotations(project.studio_id)
        unknown = len(there - known(place, project))
        _await_rest(place, project)
        trainings, batches = _worked(place, project)
        reconcile_project(place, project.id)
        return self._side(
            OURS,
            project.studio_id,
            done,
            trainings=trainings,
            batches=batches,
            given_up=given_up,
            unknown=unknown,
            unknown_after=len(self.studio.annotations(project.studio_id) - known(place, project)),
        )

    def official(self, home: Path, way: str) -> Side:
        with Stack() as stack:
            server = official.start(stack, home, way, self.settings.labels)
            project = self.studio.project()
            server.server.await_rest()
            server.connect(self.studio, project, self.settings.k)
            say(f"labels beside the official server, which trains {way}")
            done, given_up = self._label(project, server.server.port, stack)
            book, there = server.read(), self.studio.annotations(project)
            facts = {"trainings": book.trainings, "given_up": given_up, "unknown": book.unknown(there)}
            return self._side(way, project, done, **facts)

    def _label(self, project: int, port: int | None = None, *more: Stack) -> tuple[Crowd, int]:
        """What came of it, and how many webhooks to this port Label Studio gave up meanwhile."""
        people = [self.studio.annotator(project, session) for session in self.people]
        for one in people:  # what Label Studio does once for each of them is none of anybody's waiting
            one.session.get(f"{one.url}/api/current-user/whoami", timeout=60).raise_for_status()
        before = self.studio.unanswered(port) if port else 0
        settings, others = self.settings, Others([*self.stacks, *more])
        done = crowd.label(people, settings.labels, look=settings.look, seconds=60 * settings.minutes)
        done.other_cores = others.cores
        return done, self.studio.unanswered(port) - before if port else 0

    def _side(self, name: str, project: int, done: Crowd, **facts: Any) -> Side:
        say(f"  {len(done.waits)} labels in {done.seconds:.0f} s")
        there = len(self.studio.annotations(project))
        return Side(name, done.waits, done.seconds, done.refused, done.other_cores, there, **facts)


def join(place: Workplace, studio: Studio, k: int) -> Project:
    """A new project, connected as `iwes connect` does it."""
    number = studio.project()
    options = Options(k=k, seed_size=k, rng_seed=7)
    return connect(place, studio.server.url, studio.server.token, number, options).project


def known(place: Workplace, project: Project) -> set[int]:
    with place.store.read() as session:
        return set(session.scalars(select(Label.annotation_id).where(Label.project_id == project.id, ~Label.deleted)))


def _worked(place: Workplace, project: Project) -> tuple[list[float], list[float]]:
    """The seconds of each training that has ended, and of each batch from the last label before it."""
    with place.store.read() as session:
        every = rounds.all_of(session, project)
        trainings = [model.metrics["seconds_in_all"] for model in rounds.models(session, project)]
    batches = [
        (two.opened_at - one.closed_at).total_seconds()
        for one, two in pairwise(every)
        if two.opened_at and one.closed_at
    ]
    return trainings, batches


def _await_rest(place: Workplace, project: Project) -> None:
    """Until the loop awaits labels: only then nothing changes while the two sides are compared."""
    ends = time.monotonic() + REST_SECONDS
    while time.monotonic() < ends:
        with place.store.read() as session:
            if not due(session, projects.by_id(session, project.id)):
                return
        time.sleep(0.2)
