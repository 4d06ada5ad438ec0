"""A project in a store of its own whose images are on disk already: what scoring finds in the middle of a project."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.learning.files import Content, address, serving
from jobs.rows import RowSource
from jobs.settings import Settings
from jobs.workplace import Workplace
from models.learner import Learner
from store import pool
from store.database import open_store
from store.tables import Project

BATCH = 256
"""Tasks asked for at once, as a draw does."""
PROGRESS_SECONDS = 10

Data = list[dict[str, Any]]


@dataclass(frozen=True)
class Office:
    place: Workplace
    project: Project

    def data(self, count: int) -> Data:
        return [{"image": address(number)} for number in range(count)]

    def ids(self) -> NDArray[np.int64]:
        with self.place.store.read() as session:
            return np.array(pool.drawable(session, self.project, at_least=0), np.int64)

    def source(self, learner: Learner) -> RowSource:
        return RowSource(self.place, self.project, learner)


@contextmanager
def office(
    home: Path,
    content: Content,
    count: int,
    learner: Callable[[Workplace], Learner],
    *,
    network: str = "small-cnn",
    classes: int = 10,
    gigabytes: float = 8.0,
    progress: Callable[[str], None] = lambda text: None,
) -> Iterator[Office]:
    """The images are fetched once from a server that is then gone, so what is measured cannot ask it again."""
    home.mkdir(parents=True, exist_ok=True)
    for left_over in home.glob("store.db*"):
        left_over.unlink()
    settings = replace(Settings.from_env({"IWES_HOME": str(home)}), cache_gigabytes=gigabytes, device="cpu")
    store = open_store(settings.database_url)
    try:
        place = Workplace(settings, store)
        with serving(content, home / "port") as url:
            made = Office(place, _project(place, url, count, network, classes))
            _fetch_all(made, learner(place), count, progress)
        yield made
    finally:
        store.close()


def _fetch_all(made: Office, learner: Learner, count: int, progress: Callable[[str], None]) -> None:
    source, data, told = made.source(learner), made.data(count), time.monotonic()
    for start in range(0, count, BATCH):
        bad = source.load(data[start : start + BATCH]).bad
        if bad:
            place, reason = next(iter(bad.items()))
            raise ValueError(f"image {start + place} of the benchmark cannot be read: {reason}")
        if time.monotonic() - told > PROGRESS_SECONDS:
            told = time.monotonic()
            progress(f"{min(start + BATCH, count):,} of {count:,} images on disk")


def batches(values: Any) -> Iterator[Any]:
    """A list, an array or a tensor, some at a time."""
    for start in range(0, len(values), BATCH):
        yield values[start : start + BATCH]


def _project(place: Workplace, url: str, count: int, network: str, classes: int) -> Project:
    with place.store.write() as session:
        project = Project(
            studio_url=url,
            studio_id=1,
            title="benchmark",
            token="t" * 40,
            secret="unused",  # noqa: S106
            backend_url="http://127.0.0.1:1",
            control="label",
            target="image",
            field="image",
            classes=[str(number) for number in range(classes)],
            seed_size=50,
            k=50,
            cap=2.0,
            floor=0.05,
            reserve=0.0,
            sharpness=1.0,
            network=network,
            rng_seed=7,
            connected=True,
        )
        session.add(project)
        session.flush()
        pool.mirror(session, project, {number + 1: {"image": address(number)} for number in range(count)})
    return project
