"""Gets ready for the next draw while annotators label: the images that it will look at first are fetched by then."""

from __future__ import annotations

import logging
import math

import numpy as np

import iwes
from jobs import queues, step
from jobs.draw import seed_of
from jobs.workplace import Workplace
from store import pool, projects, rounds
from store.tables import Mode, Project, Round, RoundState
from studio.errors import ServerFault, Unreachable

log = logging.getLogger(__name__)

CHUNK = 32
"""Images between two looks whether somebody waits for this worker."""
FETCHERS = 2
"""At once. Label Studio's time is its annotators'."""
MOST = 5_000


def fetch(project_id: int, number: int) -> None:
    """The job. Killed at any moment it leaves what it has fetched; nothing else depends on it."""
    step.run(fetch_ahead, project_id, number)


def fetch_ahead(place: Workplace, project_id: int, number: int) -> int:
    """Fetches what the draw of this number will need, and describes it where a frozen network does; returns how many
    tasks were seen to. The draw's order is known beforehand: it depends on the seed and on the tasks that are left, and
    these change only where some come or go, or are labelled without having been asked for."""
    with place.store.read() as session:
        project = projects.by_id(session, project_id)
        last = rounds.latest(session, project)
        if last is None or project.mode not in (Mode.AUTO, Mode.ENT) or not _awaited(last, number):
            return 0
        task_ids = pool.drawable(session, project, at_least=project.k)
    if not task_ids:
        return 0
    from jobs.rows import RowSource  # brings torch
    from jobs.train import learner_of

    order = iwes.asked_first(
        len(task_ids), _reach(project, last), rng=np.random.default_rng(seed_of(project, number))
    ).tolist()
    source = RowSource(place, project, learner_of(place, project, last.number), fetchers=FETCHERS)
    done = 0
    for start in range(0, len(order), CHUNK):
        with place.store.read() as session:
            last = rounds.latest(session, projects.by_id(session, project_id))
            if last is None or not _awaited(last, number) or queues.any_waiting(place.redis, queues.GPU):
                break
            data = pool.data_of(session, [task_ids[index] for index in order[start : start + CHUNK]])
        try:
            source.load(data)
        except (Unreachable, ServerFault) as error:
            log.info("project %s: no more images are fetched ahead: %s", project_id, error)
            break
        done += len(data)
        step.note("progress", {"fetched": done, "of": len(order)})
    log.info("project %s round %s: %s images are there before it is drawn", project_id, number, done)
    return done


def _awaited(last: Round, number: int) -> bool:
    """Whether labels are still to come before the draw of this number."""
    return last.number == number - 1 and last.state == RoundState.OPEN


def _reach(project: Project, last: Round) -> int:
    """How many tasks the draw will hardly look beyond: each is accepted with a chance of the floor at least; and a
    model that has learnt more looks for longer than the last one did, but not twice as long."""
    wanted = project.k * (1 + project.reserve)
    by_floor = wanted / project.floor if project.floor else MOST
    by_last = 2 * last.examined * (1 + last.reserve) if last.model_version else MOST
    return math.ceil(min(by_floor, by_last, MOST))
