"""What the senders are asked for and what they say came of it: both cross a pipe to and from their own process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.load.webhooks import Webhooks

LIMIT_SECONDS = 1.0
"""How long Label Studio waits for the answer to a webhook."""
OK = ("200", "201")
"""The official server answers 201."""


@dataclass(frozen=True)
class Order:
    port: int
    webhooks: Webhooks
    seconds: float
    rate: float | None = None
    """Webhooks a second, sent when they are due whatever became of those before; None: each sender sends the next as
    soon as the last is answered."""
    keep_alive: bool = False
    """Else each webhook has a connection of its own, as Label Studio makes them."""
    connections: int = 64
    at_most: int = 1_000_000
    patience: float = 30.0
    """Seconds after which a sender gives up waiting for an answer."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Order:
        return cls(**{**values, "webhooks": Webhooks.from_dict(values["webhooks"])})


@dataclass
class Outcome:
    """Latencies are in seconds; in a paced run from the moment at which a webhook was due, not from when a sender was
    free for it."""

    seconds: float = 0.0
    """From the first webhook sent to the last that was answered well."""
    sent: int = 0
    unsent: int = 0
    """Those of a paced run for which no sender was free in as much time again."""
    answers: dict[str, int] = field(default_factory=dict)
    """By status; `dropped` for a connection that ended without one, `silent` for patience that did."""
    taken: list[int] = field(default_factory=list)
    """The webhooks that were answered well, by number."""
    latencies: list[float] = field(default_factory=list)
    """Of those."""
    cpu_seconds: float = 0.0
    """What the senders themselves took."""

    @property
    def rate(self) -> float:
        return len(self.taken) / self.seconds if self.seconds else 0.0

    @property
    def not_taken(self) -> int:
        return self.sent - len(self.taken)

    @property
    def late(self) -> int:
        """Those for which Label Studio would not have waited, and those never answered or not even sent."""
        return sum(latency > LIMIT_SECONDS for latency in self.latencies) + self.not_taken + self.unsent

    def latency(self, share: float) -> float:
        """The latency that this share of the answers did not exceed."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("inf")

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Outcome:
        return cls(**values)
