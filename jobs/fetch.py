"""Gets ready for the next draw while annotators label: the images that it will look at first are fetched by then.

The order of a draw is known beforehand. It depends on the seed and on the tasks that are left, and these change only
where some come or go, turn out to be unreadable, or are labelled without having been asked for.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from rq import get_current_job

import iwes
from jobs import queues, step
from jobs.draw import SCORING_BATCH, seed_of
from jobs.workplace import Workplace
from store import pool, projects, rounds
from store.tables import Mode, Project, Round, RoundState

if TYPE_CHECKING:
    from jobs.rows import RowSource

log = logging.getLogger(__name__)

CHUNK = 8
"""Images between two looks whether they are still wanted and nobody waits for this worker. Each may take half a minute,
and all labels may come meanwhile."""
FETCHERS = 2
"""At once. Label Studio's time is its annotators'."""
MOST = 5_000


def fetch(project_id: int, number: int) -> None:
    """The job. Killed at any moment it leaves what it has fetched; nothing else depends on it."""
    step.run(fetch_ahead, project_id, number)


def fetch_ahead(place: Workplace, project_id: int, number: int) -> int:
    """Fetches what the draw of this number will need, describes it where a frozen network does, and sets aside what
    cannot be read; returns how many tasks were seen to. Whatever is wrong is left to the draw, which will meet it too,
    and at which somebody waits."""
    ahead = _Ahead(place, project_id, number)
    try:
        while ahead.look():
            pass
    except Exception as error:  # noqa: BLE001 - a model of another package may raise anything
        log.warning("project %s: no more images are fetched for the next draw: %s", project_id, error)
    log.info("project %s round %s: %s images are there before it is drawn", project_id, number, ahead.done)
    return ahead.done


class _Ahead:
    def __init__(self, place: Workplace, project_id: int, number: int) -> None:
        self._place, self._project_id, self._number = place, project_id, number
        self.done = 0

    def look(self) -> bool:
        """Goes through what the draw would ask for first; whether it has to be done again, as a task was set aside, and
        without it the order is another."""
        awaited = self._awaited()
        if awaited is None:
            return False
        project, last = awaited
        with self._place.store.read() as session:
            task_ids = pool.drawable(session, project, at_least=project.k)
        if not task_ids:
            return False
        from jobs.rows import RowSource  # brings torch
        from jobs.train import next_learner

        rng = np.random.default_rng(seed_of(project, self._number))
        first = iwes.asked_first(len(task_ids), _reach(project, last), rng=rng)
        order = [task_ids[index] for index in first.tolist()]
        source = RowSource(self._place, project, next_learner(self._place, project, last.number), fetchers=FETCHERS)
        self.done, any_bad = 0, False
        while self.done < len(order) and self._goes_on():
            some = order[self.done : self.done + CHUNK]
            any_bad |= self._see_to(source, some)
            self.done += len(some)
            step.note("progress", {"fetched": self.done, "of": len(order)})
        return any_bad and self.done == len(order)

    def _see_to(self, source: RowSource, task_ids: Sequence[int]) -> bool:
        """Whether there was anything bad among them."""
        with self._place.store.read() as session:
            data = pool.data_of(session, task_ids)
        bad = source.load(data).bad
        if bad:
            with self._place.store.write() as session:
                for index, reason in bad.items():
                    pool.set_aside(session, task_ids[index], reason)
        return bool(bad)

    def _goes_on(self) -> bool:
        """Whether labels are still awaited, and nothing waits for this worker but images of other projects."""
        if self._awaited() is None:
            return False
        served = queues.served_here(self._place.redis, get_current_job()) or [queues.GPU]
        return not any(queues.any_waiting(self._place.redis, name, besides="fetch") for name in served)

    def _awaited(self) -> tuple[Project, Round] | None:
        """The round whose labels annotators are to give before this draw; None where they are not, or no more."""
        with self._place.store.read() as session:
            project = projects.by_id(session, self._project_id)
            last = rounds.latest(session, project)
        if last is None or not project.connected or project.mode not in (Mode.AUTO, Mode.ENT):
            return None
        return (project, last) if last.number == self._number - 1 and last.state == RoundState.OPEN else None


def _reach(project: Project, last: Round) -> int:
    """How many tasks the draw will hardly look beyond: each is accepted with a chance of the floor at least; and a
    model that has learnt more looks for longer than the last one did, but not twice as long."""
    wanted = project.k * (1 + project.reserve)
    by_floor = wanted / project.floor if project.floor else MOST
    by_last = 2 * last.examined * (1 + last.reserve) if last.model_version else MOST
    return math.ceil(min(by_floor, by_last, MOST) / SCORING_BATCH) * SCORING_BATCH
