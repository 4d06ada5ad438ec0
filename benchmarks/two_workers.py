"""The same selection by IWeS-dis with one worker and with two: f and g are two jobs, so two workers train both at once.

`python -m benchmarks.two_workers`: real Redis, real RQ workers, real training; the two take turns in one run.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from backend.embedded.process import Process, Stack
from backend.embedded.redis import start_redis
from benchmarks.learning.office import Office, office
from benchmarks.learning.pictures import noise
from jobs.loop import advance, selecting
from jobs.settings import Settings
from jobs.workplace import Workplace
from models.learner import Learner
from models.plan import Plan
from store import labels, pool, projects, rounds, subsets
from store.tables import Subset

START = "from backend.cli import main; main()"


def main() -> None:
    asked = argparse.ArgumentParser(prog="python -m benchmarks.two_workers", description=__doc__)
    asked.add_argument("--pool", type=int, default=2_000, help="tasks that came with a label (2,000)")
    asked.add_argument("--size", type=int, default=800, help="tasks selected (800)")
    asked.add_argument("--k", type=int, default=200, help="in each round (200)")
    asked.add_argument("--repeats", type=int, default=2, help="of each (2)")
    given = asked.parse_args()
    with TemporaryDirectory(prefix="iwes-benchmark-") as folder, Stack() as stack:
        home = Path(folder)
        settings = Settings.from_env({"IWES_HOME": folder})
        start_redis(stack, settings)
        with office(
            home, lambda n: noise(n, 28), given.pool, lambda p: p.workshop.learner("small-cnn", Plan())
        ) as made:
            _label_all(made)
            place = Workplace(settings, made.place.store)
            took: dict[int, list[float]] = {1: [], 2: []}
            for turn in range(given.repeats):
                for workers in (1, 2):
                    name = f"{'ab'[workers - 1]}{turn}"
                    seconds, training = _select(place, made.project.id, settings, name, workers, given.size, given.k)
                    took[workers].append(seconds)
                    print(
                        f"{workers} worker(s): {seconds:.1f} s, f and g {training:.1f} s", file=sys.stderr, flush=True
                    )
    one, two = (statistics.mean(took[workers]) for workers in (1, 2))
    print(f"\n| {given.size} of {given.pool:,} by IWeS-dis | one worker | two workers | ratio |\n|---|---|---|---|")
    print(f"| wall time | {one:.1f} s | {two:.1f} s | {two / one:.2f} |")


def _learner(place: Workplace) -> Learner:
    return place.workshop.learner("small-cnn", Plan())


def _label_all(made: Office) -> None:
    """Classes by number: what is learnt does not matter, only that f and g take as long as they do."""
    moment = datetime.now(UTC)
    with made.place.store.write() as session:
        project = projects.lock(session, made.project.id)
        tasks = pool.by_studio_id(session, project, pool.known_ids(session, project))
        kind = {"skipped": False, "ground_truth": False, "annotator": 1, "created_at": moment, "updated_at": moment}
        labels.record(
            session,
            project,
            [(task.id, labels.NewLabel(n, str(n % 10), imported=True, **kind)) for n, task in tasks.items()],
        )


def _select(
    place: Workplace, project_id: int, settings: Settings, name: str, workers: int, size: int, k: int
) -> tuple[float, float]:
    """Seconds in all, and of them those in which a model was being trained."""
    with place.store.write() as session:
        project = projects.lock(session, project_id)
        subset = subsets.ask(session, project, name=name, rule="dis", size=size, seed_size=k, k=k)
    env = {**os.environ, **settings.as_env(), "OMP_NUM_THREADS": "1"}
    with Stack() as stack:
        for number in range(workers):
            command = [sys.executable, "-c", START, "worker", "--queue", "gpu"]
            stack.start(Process(f"worker-{number}", command, settings.home / f"{name}-{number}.log", env))
        time.sleep(8)  # until torch is imported
        began = time.monotonic()
        advance(place, project_id)
        while not _is_selected(place, project_id, subset):
            stack.check()
            time.sleep(0.05)
        seconds = time.monotonic() - began
    with place.store.read() as session:
        every = rounds.all_of(session, projects.by_id(session, project_id), subset)
        training = sum((r.trained_at - r.closed_at).total_seconds() for r in every if r.trained_at and r.closed_at)
    return seconds, training


def _is_selected(place: Workplace, project_id: int, subset: Subset) -> bool:
    with place.store.read() as session:
        works = selecting(session, projects.by_id(session, project_id), subsets.by_id(session, subset.id))
    return all(work.function == "jobs.show.show" for work in works)


if __name__ == "__main__":
    main()
