"""How good a model is on what nobody has labelled, told by the labels it asked for itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sqlalchemy.orm import Session

import iwes
from store import examples
from store.tables import Project, Round


@dataclass(frozen=True)
class Accuracy:
    """Of the model that drew a round, on the pool it drew from: neither it nor its training has seen those labels."""

    model_version: str
    estimate: iwes.Estimate
    answered: int
    missing: int
    """Tasks of the batch without a label: skipped, deleted, or still to come. The estimate speaks for the others."""


def of_round(session: Session, project: Project, round_: Round) -> Accuracy | None:
    """None for the seed round, which no model drew, and until its first label is in."""
    if round_.model_version is None:
        return None
    classes = {example.task_id: example.class_name for example in examples.of_project(session, project)}
    batch = [draw for draw in round_.draws if not draw.reserve and draw.predicted is not None]
    answered = [draw for draw in batch if draw.task_id in classes]
    if not answered:
        return None
    estimate = iwes.estimate_mean(
        np.array([draw.predicted == classes[draw.task_id] for draw in answered], float),
        np.array([draw.inclusion for draw in answered]),
        examined=round_.examined,
        pool_size=round_.pool_size,
    )
    return Accuracy(round_.model_version, estimate, len(answered), len(batch) - len(answered))
