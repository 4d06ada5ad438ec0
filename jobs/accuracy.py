"""How good a model is on what nobody has labelled, told by the labels it asked for itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

    def __str__(self) -> str:
        estimate = self.estimate
        missing = f", {self.missing} labels missing" if self.missing else ""
        return f"{estimate.value:.0%} ({estimate.low:.0%}–{estimate.high:.0%}{missing})"


def of_rounds(session: Session, project: Project, rounds: Sequence[Round]) -> dict[int, Accuracy]:
    """By the number of the round; without the seed round, which no model drew, and those that have no label yet."""
    classes = {example.task_id: example.class_name for example in examples.of_project(session, project)}
    found = {round_.number: _of_round(round_, classes) for round_ in rounds}
    return {number: accuracy for number, accuracy in found.items() if accuracy is not None}


def _of_round(round_: Round, classes: Mapping[int, str]) -> Accuracy | None:
    batch = [draw for draw in round_.draws if not draw.reserve and draw.predicted is not None]
    answered = [draw for draw in batch if draw.task_id in classes]
    if round_.model_version is None or not answered:
        return None
    estimate = iwes.estimate_mean(
        np.array([draw.predicted == classes[draw.task_id] for draw in answered], float),
        np.array([draw.inclusion for draw in answered]),
        examined=round_.examined,
        pool_size=round_.pool_size,
    )
    return Accuracy(round_.model_version, estimate, len(answered), len(batch) - len(answered))
