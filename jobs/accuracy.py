"""How good each model is on what nobody has labelled, told by the labels it asked for itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

import iwes
from jobs import sample
from jobs.sample import Response, Sample, figures
from store import answers, rounds
from store.answers import Batch
from store.tables import Project

FEWEST = 5.0
"""A class's recall is told from so many labels of it on, counted by their effective size: with fewer, Student's
quantile is not known well, and no interval would be of use."""


@dataclass(frozen=True)
class Accuracy:
    """Of the model that drew a round, on the pool it drew from: neither it nor its training has seen those labels."""

    round: int
    model_version: str
    trained_on: int | None
    """How many labels the model was trained on; None where that is not known."""
    rest: int
    """How many tasks it drew from: those that nobody had labelled and no annotator had on the screen."""
    estimate: iwes.Estimate
    response: Response
    complete: bool
    """Whether the round is closed; until then the figures move with each label."""
    helped: bool
    """Whether the model's own word went into the estimate."""

    @property
    def worth(self) -> float:
        """Labels drawn by lot that would tell as much; no more than there are, nor, without the model's help, than
        were given."""
        return min(self.estimate.worth, self.rest if self.helped else self.response.answered)

    def __str__(self) -> str:
        missing = f", {self.response.missing} labels missing" if self.response.missing else ""
        return f"{self.estimate.value:.0%} ({self.estimate.low:.0%}–{self.estimate.high:.0%}{missing})"

    def as_dict(self) -> dict[str, Any]:
        return {
            "round": self.round,
            "model_version": self.model_version,
            "trained_on": self.trained_on,
            "rest": self.rest,
            "complete": self.complete,
            **figures(self.estimate),
            "worth": self.worth,
            "response": self.response.as_dict(),
        }


@dataclass(frozen=True)
class Recall:
    """The share of a class's tasks, among those a model drew from, that the model takes for what they are."""

    class_name: str
    labels: int
    """Answered tasks of this class in its batch."""
    estimate: iwes.Estimate | None
    reason: str | None
    """Why there is no estimate."""

    def as_dict(self) -> dict[str, Any]:
        told = figures(self.estimate) if self.estimate else None
        return {"class": self.class_name, "labels": self.labels, "recall": told, "reason": self.reason}


def of_rounds(session: Session, project: Project) -> dict[int, Accuracy]:
    """By the number of the round; without the seed, which no model drew, and those that have no label yet."""
    found = curve(answers.of_project(session, project).batches, rounds.trained_on(session, project))
    return {accuracy.round: accuracy for accuracy in found}


def curve(batches: Sequence[Batch], trained_on: Mapping[str, int]) -> list[Accuracy]:
    """Of every model that drew a batch with a label, in the order of the rounds."""
    found = [_accuracy(batch, trained_on) for batch in batches]
    return [accuracy for accuracy in found if accuracy is not None]


def recall(batch: Batch, classes: Sequence[str]) -> list[Recall]:
    """Of the model that drew the batch, by class."""
    judging = sample.judging(batch)
    if judging is None:
        return []
    label, right, found = judging.classes, judging.right, []
    for number, name in enumerate(classes):
        within = label == number
        count, estimate, reason = int(within.sum()), None, None
        if iwes.effective_size(1.0 / judging.chance[within]) >= FEWEST:
            estimate = iwes.estimate_within(right, within, judging.chance, **judging.seen)
        else:
            reason = f"too few labels: {count} of this class" if count else "no label of this class"
        found.append(Recall(name, count, estimate, reason))
    return found


def _accuracy(batch: Batch, trained_on: Mapping[str, int]) -> Accuracy | None:
    judging = sample.judging(batch)
    if judging is None or batch.model_version is None:
        return None
    estimate, helped = _estimate(judging)
    return Accuracy(
        round=batch.number,
        model_version=batch.model_version,
        trained_on=trained_on.get(batch.model_version),
        rest=batch.pool_size,
        estimate=estimate,
        response=judging.response,
        complete=batch.complete,
        helped=helped,
    )


def _estimate(judging: Sample) -> tuple[iwes.Estimate, bool]:
    """With the help of the model that is judged, where it is known how sure it was, and whether it was: its word counts
    for nothing where labels prove it wrong."""
    settled = judging.settled
    said = settled.foresight if settled else None
    if settled is None or said is None or said.sure is None:
        return iwes.estimate_mean(judging.right, judging.chance, **judging.seen), False
    seen = {**judging.seen, "asked_about": said.asked_about}
    sure = said.confidence, said.sure
    return iwes.assisted_mean(settled.right, settled.chance, *sure, within=settled.answered, **seen), True
