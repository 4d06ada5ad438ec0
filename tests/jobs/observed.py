"""Jobs as ours are, for the tests of what is told and counted about them."""

from __future__ import annotations

import logging
import os

from jobs import step
from jobs.workplace import Workplace
from store import projects


def talk(project_id: int, number: int) -> None:
    step.run(_talk, project_id, number)


def fail(project_id: int, number: int) -> None:
    step.run(_fail, project_id, number)


def write(project_id: int, number: int) -> None:
    step.run(_write, project_id, number)


def kill_itself(project_id: int, number: int) -> None:
    os.kill(os.getpid(), 9)


def _talk(place: Workplace, project_id: int, number: int) -> None:
    logging.getLogger("somebody.else").info("hello from %s", number)


def _write(place: Workplace, project_id: int, number: int) -> None:
    with place.store.write() as session:
        projects.lock(session, project_id)


def _fail(place: Workplace, project_id: int, number: int) -> None:
    raise ValueError(f"round {number} cannot be done with token=HIDDEN")
