"""The loop, round by round: one annotator gives k labels, then waits for the batch that comes of them.

Nobody labels meanwhile, so each part takes as long as it takes by itself. The parts' times are those that the product
records: moments of the round in the store, and of its jobs in RQ.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from rq.job import Job

from backend.demo.annotator import Annotator
from benchmarks.loop.progress import say
from benchmarks.loop.split import Moments, Split
from benchmarks.loop.studio import Studio
from jobs import queues
from jobs.workplace import Workplace
from store import projects, rounds
from store.tables import Project, Round

POLL_SECONDS = 0.05
PATIENCE = 300.0


class LoopStalled(RuntimeError):
    """The next batch does not come."""


@dataclass(frozen=True)
class Timed:
    """A round as it went, before its work has been done again in a plain process."""

    number: int
    examples: int
    epochs: float
    scored: int
    split: Split


def follow(place: Workplace, project: Project, studio: Studio, count: int) -> list[Timed]:
    annotator = studio.annotator(project.studio_id)
    timed = []
    for number in range(count):
        one = _round(place, project, studio, annotator, number)
        say(f"  round {number}: {one.examples} labels, {one.split.whole:.2f} s until the next batch")
        timed.append(one)
    return timed


def _round(place: Workplace, project: Project, studio: Studio, annotator: Annotator, number: int) -> Timed:
    with place.store.read() as session:
        wanted = rounds.by_number(session, project, number).wanted
    for _ in range(wanted):
        if not annotator.label_one():
            raise LoopStalled(f"Label Studio has no task left in round {number}")
    sent = datetime.now(UTC) - timedelta(seconds=annotator.submit_seconds[-1])
    ends = time.monotonic() + PATIENCE
    while studio.served_queue(project.studio_id) != f"iwes-queue-{number + 1}":
        if time.monotonic() > ends:
            raise LoopStalled(
                f"round {number} had its {wanted} labels {PATIENCE:.0f} s ago: {_standing(place, project)}"
            )
        time.sleep(POLL_SECONDS)
    switched = datetime.now(UTC)
    task = annotator.next_task()
    served = datetime.now(UTC)
    with place.store.read() as session:
        before, after = (rounds.by_number(session, project, n) for n in (number, number + 1))
        if task is None or task["id"] not in {draw.task.studio_id for draw in after.draws}:
            raise LoopStalled(
                f"round {number + 1} is served, but the next task is none of its own: {task and task['id']}"
            )
        model = next(one for one in rounds.models(session, project) if one.round_number == number)
    moments = _moments(place, project, before, after, (sent, switched, served))
    scored = _job(place, project, number + 1, "draw").meta.get("progress", {}).get("scored", after.examined)
    return Timed(number, model.examples, model.metrics["epochs"], scored, Split.of(moments))


def _moments(
    place: Workplace, project: Project, before: Round, after: Round, outside: tuple[datetime, datetime, datetime]
) -> Moments:
    sent, switched, served = outside
    return Moments(
        sent=sent,
        closed=_known(before.closed_at),
        train_began=_known(_job(place, project, before.number, "train").started_at),
        trained=_known(before.trained_at),
        draw_began=_known(_job(place, project, after.number, "draw").started_at),
        drawn=_known(after.drawn_at),
        publish_began=_known(_job(place, project, after.number, "publish").started_at),
        switched=switched,
        served=served,
    )


def _job(place: Workplace, project: Project, number: int, kind: str) -> Job:
    name = f"project-{project.id}-round-{number}-{kind}"
    job = queues.find(place.redis, name)
    if job is None:
        raise LoopStalled(f"RQ does not know {name}")
    return job


def _known(moment: datetime | None) -> datetime:
    if moment is None:
        raise LoopStalled("a step of the round has no moment")
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _standing(place: Workplace, project: Project) -> str:
    with place.store.read() as session:
        last = rounds.latest(session, projects.by_id(session, project.id))
    return f"the last round is {last.number}, {last.state}" if last else "there is no round"
