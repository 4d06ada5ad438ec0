"""The bench: Redis, a worker that trains, the three servers, and the measurements that can be made of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree

from backend.embedded.process import Stack
from backend.embedded.redis import start_redis
from benchmarks.load import digits, official, ours, projects, training, yardstick
from benchmarks.load.measure import Measured, await_quiet, measure
from benchmarks.load.order import Order
from benchmarks.load.server import Server
from benchmarks.load.training import Training
from benchmarks.load.webhooks import FIRST_ANNOTATION, FIRST_PROJECT, Project, Webhooks
from jobs import queues
from jobs.settings import Settings, runtime_folder
from jobs.workplace import Workplace, workplace
from studio.connection import SECRET_HEADER

FLAT_OUT, PACED, CLOSING = "flat out", "paced", "rounds close"


@dataclass(frozen=True)
class Size:
    """How much of everything. `k` and `labels` are those of the projects whose rounds close."""

    seconds: float = 15.0
    official_seconds: float = 15.0
    official_patience: float = 60.0
    rate: float = 500.0
    connections: int = 64
    images: int = 5_000
    tasks: int = 20_000
    repeats: int = 2
    tries: int = 3
    """At a pace, for others to leave the machine alone."""
    k: int = 50
    labels: int = 60
    closing: int = 400

    @property
    def open_projects(self) -> int:
        """One for each order to the backend: to warm up, and for each kind of connection flat out and at two paces."""
        return 1 + 2 * (self.repeats + 2 * self.tries)


QUICK = Size(
    seconds=1.5,
    official_seconds=1.5,
    official_patience=4.0,
    rate=100.0,
    images=1_500,
    tasks=400,
    repeats=1,
    tries=1,
    closing=3,
)


class Bench:
    def __init__(self, place: Workplace, size: Size, wait: float) -> None:
        self.place, self._size, self._wait = place, size, wait
        ids = iter(range(FIRST_PROJECT, 10_000))
        # the round of an open project waits for its last task, which nobody labels
        self._open = [
            projects.add(place.store, [next(ids)], tasks=size.tasks, k=size.tasks) for _ in range(size.open_projects)
        ]
        self._closing = projects.add(place.store, [next(ids) for _ in range(size.closing)], tasks=size.labels, k=size.k)
        self._orders = 0

    training: Training
    ours: Server
    yardsticks: list[Server]
    official: Server

    def start(self, stack: Stack, gunicorn: tuple[int, int] | None = None, *, alone: bool = False) -> None:
        """Everything at once; returns when all is ready. `alone`: without the servers to compare with."""
        home = self.place.settings.home
        images = home / "digits"
        names = digits.write(images, self._size.images)
        self.ours = ours.start(stack, self.place, gunicorn)
        servers = [self.ours]
        if not alone:
            yardstick.sessions(self.place.settings)  # makes the table before several servers would at once
            self.yardsticks = [yardstick.start(stack, self.place.settings, *pair) for pair in yardstick.SETTINGS]
            self.official = official.start(stack, home, images)
            servers += [*self.yardsticks, self.official]
        self.training = training.start(stack, self.place, images, names)
        for server in servers:
            server.await_rest()

    def flat_out(self, server: Server, *, keep_alive: bool, seconds: float | None = None) -> Measured:
        order = self._order(server, keep_alive)
        return self._measure(server, FLAT_OUT, replace(order, seconds=seconds or order.seconds))

    def flat_out_official(self) -> Measured:
        size = self._size
        order = replace(self._order(self.official, False), patience=size.official_patience)
        return self._measure(self.official, FLAT_OUT, replace(order, seconds=size.official_seconds))

    def paced(self, server: Server, *, keep_alive: bool, rate: float) -> Measured:
        return self._measure(server, PACED, replace(self._order(server, keep_alive), rate=rate))

    def closing(self) -> tuple[Measured, bool]:
        """Webhooks to many projects, one after the other, whose rounds close on the way; and whether each round that
        had its labels closed and had one training enqueued. To be measured last: those trainings cannot succeed."""
        size = self._size
        order = self._order(self.ours, False, self._closing, size.labels)
        measured = self._measure(self.ours, CLOSING, replace(order, at_most=size.closing * size.labels))
        full = measured.outcome.sent // size.labels
        closed = projects.closed(self.place.store, [project.studio_id for project in self._closing])
        jobs = queues.queue(self.place.redis, queues.GPU).job_ids
        due = [f"project-{number}-round-0-train" for number in closed]
        return measured, len(closed) >= full and all(jobs.count(job) == 1 for job in due)

    def _measure(self, server: Server, phase: str, order: Order) -> Measured:
        await_quiet(self.training, self._wait)
        return measure(server, self.training, phase, order)

    def _order(
        self, server: Server, keep_alive: bool, about: list[Project] | None = None, tasks: int | None = None
    ) -> Order:
        """To the backend about a project of its own that nobody has labelled yet; to others it does not matter."""
        size, first = self._size, FIRST_ANNOTATION + self._orders * Order.at_most
        self._orders += 1
        if about is None:
            about, tasks = self._open.pop() if server is self.ours else self._closing[:1], size.tasks - 1
        webhooks = Webhooks.to(server.host, SECRET_HEADER, about, tasks or size.tasks, first)
        return Order(server.port, webhooks, size.seconds, keep_alive=keep_alive, connections=size.connections)


@contextmanager
def bench(home: Path, size: Size, *, wait: float = 0.0, database: str = "") -> Iterator[tuple[Bench, Stack]]:
    """`wait` is how many seconds at most each measurement is put off for other programs to leave the machine alone.
    Without a `database`, which must be empty, the store is SQLite's."""
    env = {"IWES_HOME": str(home), "IWES_DEVICE": "cpu", "IWES_RECONCILE_SECONDS": "86400", "DATABASE_URL": database}
    settings = Settings.from_env(env)
    with Stack() as stack:
        stack.callback(rmtree, runtime_folder(settings.home), ignore_errors=True)  # it lies outside of the home
        start_redis(stack, settings)
        with workplace(settings) as place:
            yield Bench(place, size, wait), stack
