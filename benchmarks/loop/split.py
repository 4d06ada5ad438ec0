"""Where the time between the k-th label and the next batch goes: the moments of a round, and what lies between them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

PARTS = {
    "label": "label taken",
    "wait": "waiting for workers",
    "train": "training",
    "draw": "draw",
    "publish": "publish",
    "serve": "next task",
}
"""In the order in which they begin; `wait` is three of them, before each job."""


@dataclass(frozen=True)
class Moments:
    """All by this machine's clock. What the product records: when the store was told (`closed`, `trained`, `drawn`) and
    when RQ began a job. `sent`, `switched` and `served` are seen from outside."""

    sent: datetime
    """The annotator pressed submit for the k-th time."""
    closed: datetime
    """The webhook had arrived and the round was complete."""
    train_began: datetime
    trained: datetime
    draw_began: datetime
    drawn: datetime
    publish_began: datetime
    switched: datetime
    """Label Studio's `project.model_version` was the new round's queue."""
    served: datetime
    """Asked for the next task, Label Studio had answered with one of the new round's."""


@dataclass(frozen=True)
class Split:
    """Seconds."""

    label: float
    """Label Studio saves the k-th label and tells of it; the backend stores it and closes the round."""
    wait: float
    """Jobs due and not begun: on their way into the queue, in it, and until a worker has forked for them."""
    train: float
    draw: float
    """Images that were not fetched while people labelled are fetched from Label Studio in it."""
    publish: float
    """Until the switch; queues of old rounds are removed after it."""
    serve: float
    """Label Studio answers for the next task."""

    @classmethod
    def of(cls, at: Moments) -> Split:
        def between(start: datetime, end: datetime) -> float:
            return (end - start).total_seconds()

        waits = ((at.closed, at.train_began), (at.trained, at.draw_began), (at.drawn, at.publish_began))
        return cls(
            label=between(at.sent, at.closed),
            wait=sum(between(*ends) for ends in waits),
            train=between(at.train_began, at.trained),
            draw=between(at.draw_began, at.drawn),
            publish=between(at.publish_began, at.switched),
            serve=between(at.switched, at.served),
        )

    @property
    def whole(self) -> float:
        return sum(asdict(self).values())

    @property
    def ours(self) -> float:
        """Without what Label Studio does itself: take the label, take the batch, serve a task."""
        return self.wait + self.train + self.draw


@dataclass(frozen=True)
class Bare:
    """The same work in one plain process with nothing beside it, in seconds."""

    train: float
    forward: float
    epochs: float
    """With the same labels, weights and seed, as many as in the round."""

    @property
    def whole(self) -> float:
        return self.train + self.forward


@dataclass(frozen=True)
class Round:
    number: int
    examples: int
    """That its model was trained on."""
    epochs: float
    scored: int
    """Images that the draw had scored by the model."""
    split: Split
    bare: Bare

    @property
    def ratio(self) -> float:
        return self.split.whole / self.bare.whole

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Round:
        return cls(**{**values, "split": Split(**values["split"]), "bare": Bare(**values["bare"])})
