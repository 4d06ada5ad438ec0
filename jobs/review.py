"""Looks at every label that came with a task, and finds those that both models of a subset think improbable."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

import iwes
from jobs import step
from jobs.workplace import Workplace
from store import pool, projects, rounds, subsets
from store.tables import Doubt

if TYPE_CHECKING:
    from jobs.scoring import Opinions

log = logging.getLogger(__name__)

BATCH = 256
MOST = 200
"""Doubts kept: what a person will look through, and what Label Studio can be told of in half a minute."""


def review(project_id: int, subset_id: int) -> None:
    """The job. Done again it finds the same."""
    step.run(review_subset, project_id, subset_id)


def review_subset(place: Workplace, project_id: int, subset_id: int) -> None:
    from jobs.scoring import Opinions

    with place.store.read() as session:
        project = projects.by_id(session, project_id)
        subset = subsets.by_id(session, subset_id)
        last = rounds.latest(session, project, subset)
        labels = pool.labels_that_came(session, project)
        f, g = rounds.current_pair(session, project, subset)
    doubts: list[Doubt] = []
    if f is not None:
        opinions = Opinions(place, project, [f.version, *([g.version] if g else [])])
        known = {task_id: name for task_id, name in labels.items() if name in opinions.classes}
        doubts = sorted(_doubts(opinions, known), key=lambda doubt: -doubt.improbability)[:MOST]
    with place.store.write() as session:
        subset = subsets.by_id(session, subset_id)
        subsets.replace_doubts(session, subset, doubts)
        subset.reviewed_round = last.number if last else None
    log.info("project %s subset %s: %s labels worth a second look", project_id, subset.name, len(doubts))


def _doubts(opinions: Opinions, labels: Mapping[int, str]) -> Iterator[Doubt]:
    """Improbable is what a model gives less than an even guess would. A task the models have trained on is one they
    know by heart, so what they doubt even there is all the more worth a look; what they do not, may still be wrong."""
    chance = 1 / len(opinions.classes)
    ids = list(labels)
    for start in range(0, len(ids), BATCH):
        some = ids[start : start + BATCH]
        loaded, beliefs = opinions.of(some)
        step.note("progress", {"reviewed": start + len(some), "of": len(ids)})
        if not beliefs:
            continue
        readable = [some[place] for place in loaded.good]
        label = np.array([opinions.classes.index(labels[task_id]) for task_id in readable])
        likely = np.max([belief[np.arange(len(label)), label] for belief in beliefs], axis=0)
        apart = iwes.disagreement(beliefs[0], beliefs[-1], label)
        for place in np.flatnonzero(likely < chance).tolist():
            yield Doubt(
                task_id=readable[place],
                class_name=labels[readable[place]],
                suggested=opinions.classes[int(beliefs[0][place].argmax())],
                improbability=float(1 - likely[place]),
                disagreement=float(apart[place]),
            )
