"""The answered tasks of a batch as a sample: what they are, and the chance each had of being drawn and answered.

Skips and labels still to come are taken to be missing by chance: then every chance is smaller by the share answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import iwes
from store.answers import NONE, Batch, Foresight


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
class Settled:
    """The tasks of a batch that nobody waits for any more, with or without an answer. What the drawing model expects of
    a whole pool includes those that nobody can answer, and these are known by the skips alone."""

    classes: NDArray[np.int64]
    """NONE where there is no answer."""
    right: NDArray[np.bool_]
    answered: NDArray[np.bool_]
    chance: NDArray[np.float64]
    foresight: Foresight


@dataclass(frozen=True, eq=False)
class Sample:
    """Arrays with an entry for each answered task; a class is its place among the project's."""

    classes: NDArray[np.int64]
    right: NDArray[np.bool_]
    """Whether the drawing model was."""
    chance: NDArray[np.float64]
    response: Response
    seen: Mapping[str, int]
    """How much of its pool the draw got to see."""
    settled: Settled | None
    """With those that were skipped or lost, and what the drawing model had said of them; None unless that is known of
    each."""


def of_batch(batch: Batch) -> Sample | None:
    """None while nothing is answered."""
    return _of(batch, np.ones(len(batch.given), dtype=np.bool_))


def judging(batch: Batch) -> Sample | None:
    """What judges the model that drew the batch; one of long ago may not say what that model had predicted."""
    if batch.model_version is None:
        return None
    return _of(batch, batch.predicted != NONE)


def figures(estimate: iwes.Estimate) -> dict[str, float]:
    """Of an estimate of a share, for JSON."""
    return {
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "effective_size": estimate.effective_size,
    }


def _of(batch: Batch, asked: NDArray[np.bool_]) -> Sample | None:
    answered = asked & (batch.given != NONE)
    count, total = int(answered.sum()), int(asked.sum())
    if not count:
        return None
    lost = int((batch.lost & asked).sum())
    given = batch.given[answered]
    return Sample(
        classes=given,
        right=batch.predicted[answered] == given,
        chance=batch.inclusion[answered] * (count / (total - lost)),
        response=Response(total, count, int((batch.skipped & asked).sum()), lost),
        seen={"examined": batch.examined, "pool_size": batch.pool_size},
        settled=_settled(batch, asked),
    )


def _settled(batch: Batch, asked: NDArray[np.bool_]) -> Settled | None:
    settled = asked & ((batch.given != NONE) | batch.skipped | batch.lost)
    foresight = batch.foresight.of(settled) if batch.foresight else None
    if foresight is None:
        return None
    given = batch.given[settled]
    return Settled(
        classes=given,
        right=batch.predicted[settled] == given,
        answered=given != NONE,
        chance=batch.inclusion[settled] * (settled.sum() / asked.sum()),
        foresight=foresight,
    )
