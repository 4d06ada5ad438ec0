"""How common each class is among all tasks: the labelled ones are known, and each batch speaks of the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import iwes
from jobs import sample
from jobs.sample import Sample, figures
from store.answers import CAME, Answers

NOTHING_LEFT = 1e-6
"""Stands for no task left to estimate, so that a pool that is answered wholly outweighs every other round."""


HELP = 4
"""A label tells so many times as much about classes where a model helps: on real images, errors are half as large."""


@dataclass(frozen=True)
class ClassShare:
    """How common a class is among all tasks, labelled or not."""

    class_name: str
    known: int
    """Tasks labelled so."""
    estimate: iwes.Estimate

    def as_dict(self) -> dict[str, Any]:
        return {"class": self.class_name, "known": self.known, **figures(self.estimate)}


def class_balance(classes: Sequence[str], found: Answers) -> list[ClassShare]:
    """Empty before the first label of a batch.

    When a round is drawn, some labels are known; its batch speaks of all other tasks. Both together are an estimate for
    the whole pool. Tasks that were neither known nor in its pool (skipped, on a screen, new since) are taken to be like
    the rest. A model that drew a round helps: what it expects of the whole rest is corrected by what the batch proves
    wrong. The rounds' estimates are combined in proportion to what the sizes of batch and rest, and the help, let
    expect of them, whatever the labels say.
    """
    tasks, by_round = found.tasks, _known_before(classes, found)
    estimates: list[list[iwes.Estimate]] = []
    trust: list[float] = []
    for batch in found.batches:
        answered, before = sample.of_batch(batch), by_round[batch.number]
        rest = tasks - int(before.sum())
        if answered is None or rest <= 0:
            continue
        shares = _shares(answered, len(classes))
        estimates.append(
            [
                iwes.with_known(share, remaining=rest, known_sum=float(count), known=tasks - rest)
                for share, count in zip(shares, before, strict=True)
            ]
        )
        labels = min(answered.response.answered, rest)
        trust.append((HELP if answered.settled else 1) * labels / (rest * max(rest - labels, NOTHING_LEFT)))
    if not estimates:
        return []
    now = by_round[-1]
    unknown = tasks - int(now.sum())
    return [
        ClassShare(name, int(count), _possible(iwes.combine(of_class, trust), count / tasks, (count + unknown) / tasks))
        for name, count, of_class in zip(classes, now, zip(*estimates, strict=True), strict=True)
    ]


def _shares(answered: Sample, classes: int) -> list[iwes.Estimate]:
    settled = answered.settled
    if settled is None:
        return iwes.class_balance(answered.classes, answered.chance, classes, **answered.seen)
    said = settled.foresight
    seen = {**answered.seen, "asked_about": said.asked_about}
    return iwes.assisted_balance(
        settled.classes, settled.chance, said.beliefs, said.shares, within=settled.answered, **seen
    )


def _known_before(classes: Sequence[str], found: Answers) -> NDArray[np.int64]:
    """Labelled tasks by class (columns) when each round was drawn (rows); the last row is all there are now."""
    place = {name: number for number, name in enumerate(classes)}
    last = max([0, *(batch.number for batch in found.batches), *(since for since, _name in found.known)])
    count = np.zeros((last + 2, len(classes)), dtype=np.int64)
    for (since, name), tasks in found.known.items():
        count[since - CAME, place[name]] += tasks
    return count.cumsum(axis=0)


def _possible(estimate: iwes.Estimate, least: float, most: float) -> iwes.Estimate:
    """Without what the labels there are rule out."""
    low, value, high = np.clip([estimate.low, estimate.value, estimate.high], least, most).tolist()
    return replace(estimate, low=low, value=value, high=high)
