"""The training that runs all the while: a real one, of real images, by a real worker.

Its labels are the tasks' numbers, not the digits, so that it does not converge long before the last webhook is sent.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redis.exceptions import RedisError
from rq.job import JobStatus

from backend.embedded.process import Process, Stack
from benchmarks.load import processor
from jobs import queues
from jobs.loop import advance
from jobs.workplace import Workplace
from models.plan import Plan
from store import labels, pool, projects, rounds
from store.tables import FOLDER, Mode, Project

START = "from backend.cli import main; main()"
START_SECONDS = 120.0
CLASSES = [str(number) for number in range(10)]


class NotTraining(RuntimeError):
    """The training was over before the measuring was, so the figures are not what they claim to be."""


@dataclass(frozen=True)
class Moment:
    """How far the training is at some moment."""

    cpu_seconds: float
    progress: dict[str, Any]


class Training:
    def __init__(self, place: Workplace, process: Process, jobs: list[str]) -> None:
        self._place, self._process, self._jobs = place, process, jobs

    def now(self) -> Moment:
        """Raises NotTraining."""
        for name in self._jobs:
            job = queues.find(self._place.redis, name)
            if job is not None and job.get_status(refresh=True) == JobStatus.STARTED:
                return Moment(
                    processor.of_session(self._process.pid or 0), job.get_meta(refresh=True).get("progress", {})
                )
        raise NotTraining(f"no training runs; the end of its log:\n{self._process.log_tail()}")


def start(stack: Stack, place: Workplace, images: Path, names: list[str], trainings: int = 2) -> Training:
    """Starts the worker and returns once it trains. A second training follows if the first should end."""
    ids = [_project(place, images, names, number) for number in range(trainings)]
    jobs = [job for project_id in ids for job in advance(place, project_id)]
    settings = place.settings
    argv = [sys.executable, "-c", START, "worker", "--queue", "gpu"]
    env = {**os.environ, **settings.as_env()}
    worker = stack.start(Process("worker", argv, settings.home / "logs" / "worker.log", env))
    training = Training(place, worker, jobs)
    worker.wait_until(lambda: _is_on(training), START_SECONDS, "it trained")
    return training


def _is_on(training: Training) -> bool:
    try:
        return "epoch" in training.now().progress
    except (NotTraining, RedisError):  # all is being started at once, and Redis has to wait for its turn too
        return False


def _project(place: Workplace, images: Path, names: list[str], number: int) -> int:
    """One in which every task came with a label and a training is due, after which nothing is."""
    with place.store.write() as session:
        project = Project(
            studio_url=f"{FOLDER}{images}",
            studio_id=1 + number,
            secret=f"unused-{number}",
            field="image",
            classes=CLASSES,
            mode=Mode.ENT,
            seed_size=50,
            k=50,
            cap=2.0,
            floor=0.05,
            reserve=0.5,
            sharpness=1.0,
            network="small-cnn",
            training=Plan(way="full").as_dict(),
            rng_seed=7 + number,
            connected=True,
            **dict.fromkeys(("title", "token", "backend_url", "control", "target"), ""),
        )
        session.add(project)
        session.flush()
        project = projects.lock(session, project.id)
        pool.mirror(session, project, {1 + index: {"image": name} for index, name in enumerate(names)})
        labels.record_given(session, project, {1 + index: CLASSES[index % 10] for index in range(len(names))})
        rounds.add_closing(session, project, 0)
    return project.id
