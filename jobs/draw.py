"""Draws the next round from the pool: uniformly for the seed, by IWeS-ent once there is a model."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import iwes
from jobs import versions
from jobs.images import ImageSource
from jobs.loop import advance
from jobs.workplace import Workplace, workplace
from models import checkpoint
from models.classifier import Classifier
from store import pool, projects, rounds
from store.tables import Draw, Project, Round

log = logging.getLogger(__name__)

SCORING_BATCH = 256


def draw(project_id: int, number: int) -> None:
    """The job. The round's number exists once in the store, so a second run finds it there and adds nothing."""
    with workplace() as place:
        draw_round(place, project_id, number)
        advance(place, project_id)


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
        return
    rng_seed = [project.rng_seed, number]
    if model is None:
        drawn = iwes.draw_seed(len(task_ids), wanted, rng=np.random.default_rng(rng_seed), reserve=project.reserve)
    else:
        scorer = _Scorer(place, project, checkpoint.load(versions.folder(place.settings, project, model.version)))
        task_ids, drawn = _draw_readable(scorer, project, task_ids, wanted, rng_seed)
    with place.store.write() as session:
        project = projects.lock(session, project_id)
        last = rounds.latest(session, project)
        if last is not None and last.number >= number:
            return
        round_ = Round(
            number=number,
            rule="ent" if model else "seed",
            model_version=model.version if model else None,
            wanted=wanted,
            batch_size=drawn.batch_size,
            pool_size=len(task_ids),
            examined=drawn.examined,
        )
        rounds.add(session, project, round_, _rows(drawn, task_ids))
    log.info("project %s round %s: %s of %s tasks drawn", project_id, number, len(drawn.index), len(task_ids))


def _draw_readable(
    scorer: _Scorer, project: Project, task_ids: list[int], wanted: int, rng_seed: list[int]
) -> tuple[list[int], iwes.Draw]:
    """Draws; where the stream met unreadable images, sets those aside and draws again without them, from the same
    seed, so that the result is the one a pool without them would have given."""
    while True:
        ids = np.array(task_ids)
        drawn = iwes.draw(
            partial(_score_places, scorer, ids),
            wanted,
            rng=np.random.default_rng(rng_seed),
            pool_size=len(task_ids),
            floor=project.floor,
            cap=project.cap,
            reserve=project.reserve,
            sharpness=project.sharpness,
            batch=SCORING_BATCH,
        )
        if not scorer.newly_bad:
            return task_ids, drawn
        task_ids = [task_id for task_id in task_ids if task_id not in scorer.newly_bad]
        scorer.set_aside()
        if not task_ids:
            raise iwes.EmptyPool("none of the pool's images can be read; `iwes status` lists why")


def _score_places(scorer: _Scorer, ids: NDArray[np.int64], places: NDArray[np.int64]) -> NDArray[np.float64]:
    return scorer.entropy(ids[places])


class _Scorer:
    """Normalised entropy of tasks under one model; each image is fetched and scored once however often it is asked."""

    def __init__(self, place: Workplace, project: Project, classifier: Classifier) -> None:
        self._place = place
        self._classifier = classifier
        client = place.studio(project).client
        self._source = ImageSource(project, client, place.settings.image_cache, classifier.input_size)
        self._known: dict[int, float] = {}
        self.newly_bad: dict[int, str] = {}

    def entropy(self, task_ids: NDArray[np.int64]) -> NDArray[np.float64]:
        missing = [int(i) for i in task_ids if int(i) not in self._known]
        if missing:
            self._score(missing)
        return np.array([self._known[int(i)] for i in task_ids])

    def set_aside(self) -> None:
        with self._place.store.write() as session:
            for task_id, reason in self.newly_bad.items():
                pool.set_aside(session, task_id, reason)
        self.newly_bad = {}

    def _score(self, task_ids: list[int]) -> None:
        with self._place.store.read() as session:
            data: list[Mapping[str, Any]] = [task.data for task in pool.by_id(session, task_ids)]
        loaded = self._source.load(data)
        if len(loaded.good):
            scores = iwes.entropy(self._classifier.probabilities(loaded.images))
            self._known |= {task_ids[place]: float(score) for place, score in zip(loaded.good, scores, strict=True)}
        for place, reason in loaded.bad.items():
            self._known[task_ids[place]] = 0.0
            self.newly_bad[task_ids[place]] = reason


def _rows(drawn: iwes.Draw, task_ids: list[int]) -> list[Draw]:
    return [
        Draw(
            task_id=task_ids[int(drawn.index[rank])],
            rank=rank,
            reserve=rank >= drawn.batch_size,
            position=int(drawn.position[rank]),
            passes=int(drawn.passes[rank]),
            score=None if np.isnan(drawn.score[rank]) else float(drawn.score[rank]),
            probability=float(drawn.probability[rank]),
            weight=float(drawn.weight[rank]),
            inclusion=float(drawn.inclusion[rank]),
        )
        for rank in range(len(drawn.index))
    ]
