"""Draws the next round from the pool: uniformly for the seed, by the project's rule once there is a model."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

import iwes
from jobs import step
from jobs.foreseen import Foreseen
from jobs.workplace import Workplace
from store import pool, projects, rounds
from store.tables import Draw, Model, Project, Round

if TYPE_CHECKING:
    from jobs.scoring import Scorer

log = logging.getLogger(__name__)

SCORING_BATCH = 256


def draw(project_id: int, number: int) -> None:
    """The job. The round's number exists once in the store, so a second run finds it there and adds nothing."""
    step.run(draw_round, project_id, number)


def draw_round(place: Workplace, project_id: int, number: int) -> None:
    with place.store.read() as session:
        project = projects.by_id(session, project_id)
        last = rounds.latest(session, project)
        if last is not None and last.number >= number:
            return
        model = rounds.current_model(session, project)
        wanted = project.k if model else project.seed_size
        task_ids = pool.drawable(session, project, at_least=wanted)
    if not task_ids:
        _close_the_pool(place, project_id, number)
        return
    rng_seed = seed_of(project, number)
    rule, foreseen = rounds.SEED, Foreseen()
    if model is None:
        drawn = iwes.draw_seed(len(task_ids), wanted, rng=np.random.default_rng(rng_seed), reserve=project.reserve)
    else:
        from jobs.scoring import Opinions, Scorer  # brings torch, which a seed draw does without

        rule = project.rule
        scorer = Scorer(Opinions(place, project, [model.version]), rule)
        readable = draw_readable(place, scorer, project, task_ids, wanted, rng_seed, reserve=project.reserve)
        if readable is None:
            return
        task_ids, drawn = readable
        foreseen = scorer.foreseen([task_ids[place] for place in drawn.index])
    with place.store.write() as session:
        locked = projects.lock(session, project_id)
        last = rounds.latest(session, locked)
        if last is not None and last.number >= number:
            return
        # as it was set when this was drawn, whatever has been changed since
        round_ = as_round(number, drawn, project, rule=rule, model=model, wanted=wanted)
        round_.reserve, round_.expected = project.reserve, foreseen.expected
        rounds.add(session, locked, round_, as_draws(drawn, task_ids, foreseen))
    log.info("project %s round %s: %s of %s tasks drawn", project_id, number, len(drawn.index), len(task_ids))


def seed_of(project: Project, number: int) -> list[int]:
    """All that a draw's random numbers depend on."""
    return [project.rng_seed, number]


def _close_the_pool(place: Workplace, project_id: int, number: int) -> None:
    """The pool is used up. Labels that came during the last training are trained on too: the paper's last step."""
    with place.store.write() as session:
        project = projects.lock(session, project_id)
        last = rounds.latest(session, project)
        if last is not None and last.number < number and rounds.new_labels(session, project, number):
            rounds.add_closing(session, project, number)


class Chances(Protocol):
    """How scores become probabilities and weights: as the project says, or a subset of its own."""

    floor: Any
    cap: Any
    sharpness: Any


def draw_readable(
    place: Workplace,
    scorer: Scorer,
    chances: Chances,
    task_ids: list[int],
    wanted: int,
    rng_seed: list[int],
    *,
    reserve: float = 0.0,
) -> tuple[list[int], iwes.Draw] | None:
    """Draws; where the stream met images that cannot be read or had, draws again without them, from the same seed, so
    that the result is the one a pool without them would have given. None if there is no other."""
    while task_ids:
        drawn = iwes.draw(
            scorer.over(task_ids),
            wanted,
            rng=np.random.default_rng(rng_seed),
            pool_size=len(task_ids),
            floor=chances.floor,
            cap=chances.cap,
            sharpness=chances.sharpness,
            reserve=reserve,
            batch=SCORING_BATCH,
        )
        without = scorer.newly_bad.keys() | (scorer.away & set(task_ids))
        if not without:
            return task_ids, drawn
        task_ids = [task_id for task_id in task_ids if task_id not in without]
        _set_aside(place, scorer)
    return None


def _set_aside(place: Workplace, scorer: Scorer) -> None:
    with place.store.write() as session:
        for task_id, reason in sorted(scorer.newly_bad.items()):  # in one order for all who do this at once
            pool.set_aside(session, task_id, reason)
    scorer.newly_bad = {}


def as_round(number: int, drawn: iwes.Draw, chances: Chances, *, rule: str, model: Model | None, wanted: int) -> Round:
    """What is kept of a draw, so that each weight can be explained later; without its tasks, and without a reserve."""
    return Round(
        number=number,
        rule=rule,
        model_version=model.version if model else None,
        wanted=wanted,
        batch_size=drawn.batch_size,
        pool_size=drawn.pool_size,
        examined=drawn.examined,
        cap=chances.cap,
        floor=chances.floor,
        reserve=0.0,
        sharpness=chances.sharpness,
    )


def as_draws(drawn: iwes.Draw, task_ids: list[int], foreseen: Foreseen) -> list[Draw]:
    drawn_ids = [task_ids[place] for place in drawn.index]
    return [
        Draw(
            task_id=task_id,
            rank=rank,
            reserve=rank >= drawn.batch_size,
            position=int(drawn.position[rank]),
            passes=int(drawn.passes[rank]),
            score=None if np.isnan(drawn.score[rank]) else float(drawn.score[rank]),
            probability=float(drawn.probability[rank]),
            weight=float(drawn.weight[rank]),
            inclusion=float(drawn.inclusion[rank]),
            predicted=foreseen.predicted.get(task_id),
            beliefs=foreseen.beliefs.get(task_id),
        )
        for rank, task_id in enumerate(drawn_ids)
    ]
