"""One measurement: an order carried out on a server while the training runs, and what came of it."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.load import processor
from benchmarks.load.order import Order, Outcome
from benchmarks.load.senders import send
from benchmarks.load.server import Server
from benchmarks.load.training import NotTraining, Training

LEAST_TRAINING = 0.02
"""Of a core: what a training that has not stopped gets even on a machine that is overrun."""
QUIET_SECONDS = 2.0
QUIET_CORES = 0.15
"""What others may take without mattering."""


@dataclass(frozen=True)
class Kept:
    """What became of the webhooks that were answered well."""

    lost: int
    """Answered well, and not stored."""
    twice: int
    unknown: int
    """Stored, and never sent."""

    @classmethod
    def of(cls, stored: list[int], first: int, outcome: Outcome) -> Kept:
        found = Counter(stored)
        return cls(
            lost=sum(first + number not in found for number in outcome.taken),
            twice=sum(times > 1 for times in found.values()),
            unknown=sum(not first <= number < first + outcome.sent for number in found),
        )

    def __bool__(self) -> bool:
        """Whether everything is as it should be."""
        return not (self.lost or self.twice or self.unknown)


@dataclass(frozen=True)
class Measured:
    server: str
    phase: str
    keep_alive: bool
    asked_rate: float | None
    outcome: Outcome
    kept: Kept | None
    """None for a server that stores nothing."""
    seconds: float
    """Of the cores below, on average over these: until the last answer."""
    server_cores: float
    training_cores: float
    sender_cores: float
    other_cores: float
    """Taken by everything that this benchmark did not start."""
    progress: tuple[dict[str, Any], dict[str, Any]]
    """What the training told of itself before and after."""

    @property
    def lost(self) -> int:
        """Webhooks that Label Studio, which sends each once, has told to nobody."""
        return self.outcome.not_taken + (self.kept.lost if self.kept else 0)

    @property
    def server_milliseconds(self) -> float:
        """Of processor time for each webhook."""
        return 1e3 * self.server_cores * self.seconds / max(1, len(self.outcome.taken))

    @property
    def sender_milliseconds(self) -> float:
        return 1e3 * self.sender_cores * self.seconds / max(1, self.outcome.sent)

    def as_dict(self) -> dict[str, Any]:
        told = asdict(self)
        told["outcome"] = {name: told["outcome"][name] for name in ("seconds", "sent", "unsent", "answers")}
        shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
        return told | {
            "rate": self.outcome.rate,
            "late": self.outcome.late,
            "lost": self.lost,
            "latency": {name: self.outcome.latency(share) for name, share in shares.items()},
            "server_milliseconds": self.server_milliseconds,
            "sender_milliseconds": self.sender_milliseconds,
        }


def await_quiet(training: Training, most_seconds: float) -> None:
    """Waits until nothing but the training takes much of the processors, or until the time is over."""
    ends = time.monotonic() + most_seconds
    while time.monotonic() < ends:
        before, machine = training.now().cpu_seconds, processor.of_machine()
        time.sleep(QUIET_SECONDS)
        trained = training.now().cpu_seconds - before
        if processor.of_machine() - machine - trained < QUIET_CORES * QUIET_SECONDS:
            return


def measure(server: Server, training: Training, phase: str, order: Order) -> Measured:
    """Raises NotTraining where the training did not go on all the while."""
    before, machine, served = training.now(), processor.of_machine(), server.cpu_seconds
    began = time.perf_counter()
    outcome = send(order)
    seconds = time.perf_counter() - began
    after = training.now()
    trained, served = after.cpu_seconds - before.cpu_seconds, server.cpu_seconds - served
    if trained < LEAST_TRAINING * seconds:
        raise NotTraining(f"the training took {trained:.2f} s of processor time in {seconds:.1f} s: it stood still")
    other = processor.of_machine() - machine - trained - served - outcome.cpu_seconds
    first = order.webhooks.first
    stored = server.stored(first, first + order.at_most) if server.stored else None
    return Measured(
        server=server.name,
        phase=phase,
        keep_alive=order.keep_alive,
        asked_rate=order.rate,
        outcome=outcome,
        kept=None if stored is None else Kept.of(stored, first, outcome),
        seconds=seconds,
        server_cores=served / seconds,
        training_cores=trained / seconds,
        sender_cores=outcome.cpu_seconds / seconds,
        other_cores=max(0.0, other / seconds),
        progress=(before.progress, after.progress),
    )
