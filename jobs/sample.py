"""The answered tasks of a batch as a sample: what they are, and the chance each had of being drawn and answered.

Skips and labels still to come are taken to be missing by chance: then every chance is smaller by the share answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import iwes
from store.answers import Answer, Batch


@dataclass(frozen=True)
class Response:
    """How much of a batch is answered, and what became of the rest."""

    asked: int
    answered: int
    skipped: int
    lost: int
    """Deleted since, or set aside."""

    @property
    def missing(self) -> int:
        """Without a label: skipped, lost, or still to come. Estimates speak for the others."""
        return self.asked - self.answered

    def as_dict(self) -> dict[str, int]:
        return {**vars(self), "missing": self.missing}


@dataclass(frozen=True, eq=False)
class Sample:
    answers: Sequence[Answer]
    chance: NDArray[np.float64]
    response: Response
    seen: Mapping[str, int]
    """How much of its pool the draw got to see."""

    def right(self) -> NDArray[np.bool_]:
        """Whether the drawing model was."""
        return np.array([answer.predicted == answer.class_name for answer in self.answers])

    def classes(self, names: Sequence[str]) -> NDArray[np.int64]:
        place = {name: number for number, name in enumerate(names)}
        return np.array([place[str(answer.class_name)] for answer in self.answers])


def of_batch(batch: Batch) -> Sample | None:
    """None while nothing is answered."""
    return _of(batch, batch.answers)


def judging(batch: Batch) -> Sample | None:
    """What judges the model that drew the batch; one of long ago may not say what that model had predicted."""
    if batch.model_version is None:
        return None
    return _of(batch, [answer for answer in batch.answers if answer.predicted is not None])


def figures(estimate: iwes.Estimate) -> dict[str, float]:
    """Of an estimate of a share, for JSON."""
    return {
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "effective_size": estimate.effective_size,
    }


def _of(batch: Batch, asked: Sequence[Answer]) -> Sample | None:
    answered = [answer for answer in asked if answer.class_name is not None]
    if not answered:
        return None
    lost = sum(answer.lost for answer in asked)
    skipped = sum(answer.skipped and answer.class_name is None and not answer.lost for answer in asked)
    chance = np.array([answer.inclusion for answer in answered]) * (len(answered) / (len(asked) - lost))
    seen = {"examined": batch.examined, "pool_size": batch.pool_size}
    return Sample(answered, chance, Response(len(asked), len(answered), skipped, lost), seen)
