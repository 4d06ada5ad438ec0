"""Draws the next round of a subset from the tasks that came with a label: uniformly for its seed, by its rule after."""

from __future__ import annotations

import logging

import numpy as np

import iwes
from jobs import step
from jobs.draw import as_draws, as_round, draw_readable
from jobs.foreseen import Foreseen
from jobs.workplace import Workplace
from store import pool, projects, rounds, subsets

log = logging.getLogger(__name__)


def select(project_id: int, subset_id: int, number: int) -> None:
    """The job. A round's number exists once in a subset, so a second run finds it there and adds nothing."""
    step.run(select_round, project_id, subset_id, number)


def select_round(place: Workplace, project_id: int, subset_id: int, number: int) -> None:
    with place.store.read() as session:
        project = projects.by_id(session, project_id)
        subset = subsets.by_id(session, subset_id)
        last = rounds.latest(session, project, subset)
        wanted = subsets.wanted(session, project, subset)
        if not wanted or (last is not None and last.number >= number):
            return
        labelled = pool.selectable(session, project, subset)
        f, g = rounds.current_pair(session, project, subset)
    rng_seed = [project.rng_seed, number, subset.stream]
    foreseen = Foreseen()
    task_ids = list(labelled)
    rule = rounds.SEED
    if f is not None:
        from jobs.scoring import Opinions, Scorer  # brings torch, which a seed draw does without

        opinions = Opinions(place, project, [f.version, *([g.version] if g and subset.twins else [])])
        task_ids = [task_id for task_id, class_name in labelled.items() if class_name in opinions.classes]
    if f is None or not task_ids:  # or the classes are others since: what is drawn now makes a model that knows them
        f, task_ids = None, list(labelled)
        drawn = iwes.draw_seed(len(task_ids), wanted, rng=np.random.default_rng(rng_seed))
    else:
        rule = subset.rule if opinions.models == 2 or not subset.twins else "loss"
        if rule != subset.rule:
            log.warning("project %s subset %s: no g to compare with; drawn by loss", project_id, subset.name)
        scorer = Scorer(opinions, rule, labelled)
        readable = draw_readable(place, scorer, subset, task_ids, wanted, rng_seed)
        if readable is None:
            return
        task_ids, drawn = readable
        foreseen = Foreseen(scorer.predicted)
    with place.store.write() as session:
        project = projects.lock(session, project_id)
        last = rounds.latest(session, project, subset)
        if last is not None and last.number >= number:
            return
        round_ = as_round(number, drawn, subset, rule=rule, model=f, wanted=wanted)
        rounds.add_selected(session, project, subset, round_, as_draws(drawn, task_ids, foreseen))
    log.info("project %s subset %s round %s: %s selected", project_id, subset.name, number, len(drawn.index))
