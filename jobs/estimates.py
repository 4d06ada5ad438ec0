"""What the labels of a project say of what nobody has labelled, for people and for pages: after each round, and live
while one collects labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

import iwes
from jobs.accuracy import Accuracy, Recall, curve, recall
from jobs.class_balance import ClassShare, class_balance
from store import answers, rounds
from store.tables import Project

HALF_WIDTH = 0.02


@dataclass(frozen=True)
class Estimates:
    """Of one project at one moment. Each interval holds with 95 %."""

    tasks: int
    """There, and readable: the whole pool."""
    labelled: int
    skipped: int
    """Skipped, and labelled by nobody."""
    half_width: float
    target: float | None
    current_model: str | None
    curve: tuple[Accuracy, ...]
    """By round: how good each model was on what was unlabelled when it drew."""
    judged: Accuracy | None
    """The newest of them."""
    said: str
    """Which model that is, in words, and whether it is the one in use."""
    labels_needed: int | None
    """How many more in the batch that judges it would tell its accuracy to within the half-width."""
    advice: iwes.Advice | None
    """Whether to stop, by the rounds that are closed; None before the first."""
    balance: tuple[ClassShare, ...]
    """Empty before the first label of a batch."""
    recall: tuple[Recall, ...]
    """Of the newest judged model, by class."""

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "tasks": self.tasks,
            "labelled": self.labelled,
            "skipped": self.skipped,
            "half_width": self.half_width,
            "target": self.target,
            "current_model": self.current_model,
            "said": self.said,
            "curve": [accuracy.as_dict() for accuracy in self.curve],
            "judged": self.judged.as_dict() if self.judged else None,
            "labels_needed": self.labels_needed,
            "advice": {"stop": self.advice.stop, "reason": self.advice.reason} if self.advice else None,
            "class_balance": [share.as_dict() for share in self.balance],
            "recall": [one.as_dict() for one in self.recall],
        }


def of_project(
    session: Session, project: Project, *, half_width: float = HALF_WIDTH, target: float | None = None
) -> Estimates:
    """Raises iwes.BadArgument where `half_width` or `target` is nothing to aim for."""
    _check("half_width", half_width)
    if target is not None:
        _check("target", target)
    given = answers.of_project(session, project)
    current = rounds.current_model(session, project)
    found = curve(given.batches, rounds.trained_on(session, project))
    judged = found[-1] if found else None
    judging = next((batch for batch in given.batches if judged and batch.number == judged.round), None)
    return Estimates(
        tasks=given.tasks,
        labelled=sum(given.known.values()),
        skipped=given.skipped,
        half_width=half_width,
        target=target,
        current_model=current.version if current else None,
        curve=tuple(found),
        judged=judged,
        said=_said(current.version if current else None, judged),
        labels_needed=_labels_needed(judged, half_width) if judged else None,
        advice=_advice(found, half_width, target),
        balance=tuple(class_balance(project.classes, given)),
        recall=tuple(recall(judging, project.classes)) if judging else (),
    )


def _said(current: str | None, judged: Accuracy | None) -> str:
    if judged is None and current is None:
        return "no model yet: the first is trained once the seed is labelled"
    if judged is None:
        return f"{current} has no labels of its own yet: those of the round it draws will judge it"
    state = "" if judged.complete else f", with {judged.response.answered} of {judged.response.asked} labels so far"
    told = f"{judged.model_version}, by round {judged.round}{state}"
    if current is None or current == judged.model_version:
        return f"{told}; it is the model in use"
    return f"{told}; {current}, in use now, has no labels of its own yet"


def _labels_needed(judged: Accuracy, half_width: float) -> int:
    needed = iwes.labels_needed(judged.estimate, judged.response.answered, half_width)
    return min(needed, max(0, judged.rest - judged.response.answered))


def _advice(found: list[Accuracy], half_width: float, target: float | None) -> iwes.Advice | None:
    """By closed rounds alone: whoever looks at every label looks too often for the advice to hold."""
    closed = [accuracy.estimate for accuracy in found if accuracy.complete]
    return iwes.stopping_advice(closed, target=target, half_width=half_width) if closed else None


def _check(name: str, value: float) -> None:
    if not 0.0 < value < 1.0:
        raise iwes.BadArgument(f"{name} is {value}: expected a number between 0 and 1, such as 0.02 or 0.95")
