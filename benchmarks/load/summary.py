"""What the measurements come to: ratios of servers measured in turns, and whether the goals are met."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.load.bench import CLOSING, FLAT_OUT, PACED
from benchmarks.load.measure import Measured
from benchmarks.load.yardstick import NAME as YARDSTICK

SUSTAINED = 500.0
NEAR_YARDSTICK = 0.8
P99_SECONDS = 0.2
EACH, KEPT = "a connection each", "kept alive"


@dataclass(frozen=True)
class Line:
    what: str
    ours: str
    other: str
    ratio: float | None
    goal: str
    met: bool | None
    """None where there is no goal."""


def connections(keep_alive: bool) -> str:
    return KEPT if keep_alive else EACH


@dataclass(frozen=True)
class Summary:
    measured: list[Measured]
    closed_once: bool | None
    """Whether every round that had its labels was closed and had one training enqueued; None if that was not tried."""
    release: str
    """Of the official server."""

    @property
    def nothing_lost(self) -> bool:
        """Of the backend: every webhook answered with success, and stored once."""
        mine = self._of("backend")
        return all(not m.lost and m.kept for m in mine) and self.closed_once is not False

    def rate(self, server: str, keep_alive: bool) -> float:
        """Of all its runs flat out together."""
        runs = self._of(server, FLAT_OUT, keep_alive)
        seconds = sum(m.outcome.seconds for m in runs)
        return sum(len(m.outcome.taken) for m in runs) / seconds if seconds else 0.0

    def lines(self) -> list[Line]:
        kinds = sorted({m.keep_alive for m in self._of("backend", FLAT_OUT)})
        found = [line for keep_alive in kinds for line in (self._sustained(keep_alive), *self._paced(keep_alive))]
        return [*found, *self._official(), *self._closing(), self._lost()]

    def as_dict(self) -> dict[str, Any]:
        return {
            "nothing_lost": self.nothing_lost,
            "official_release": self.release,
            "summary": [asdict(line) for line in self.lines()],
            "measured": [m.as_dict() for m in self.measured],
        }

    def _sustained(self, keep_alive: bool) -> Line:
        mine = self.rate("backend", keep_alive)
        yardstick, name = max(((self.rate(name, keep_alive), name) for name in self._yardsticks), default=(0.0, ""))
        ratio = mine / yardstick if yardstick else None
        return Line(
            f"webhooks/s flat out, {connections(keep_alive)}",
            f"{mine:,.0f}",
            f"{yardstick:,.0f} ({name})" if yardstick else "",
            ratio,
            f"≥ {SUSTAINED:.0f}, or a ratio ≥ {NEAR_YARDSTICK}",
            mine >= SUSTAINED or (ratio is not None and ratio >= NEAR_YARDSTICK),
        )

    def _paced(self, keep_alive: bool) -> Iterable[Line]:
        """Of several at one pace, that one counts which others disturbed least."""
        by_rate: dict[float | None, Measured] = {}
        for m in sorted(self._of("backend", PACED, keep_alive), key=lambda m: -m.other_cores):
            by_rate[m.asked_rate] = m
        runs = sorted(by_rate.values(), key=lambda m: -(m.asked_rate or 0.0))
        for m in runs:
            beside = [
                (other.outcome.latency(0.99), name)
                for name in self._yardsticks
                for other in self._of(name, PACED, keep_alive)
                if other.asked_rate == m.asked_rate
            ]
            mine, (other, name) = m.outcome.latency(0.99), min(beside, default=(0.0, ""))
            yield Line(
                f"p99 at {m.asked_rate:,.0f}/s, {connections(keep_alive)}",
                f"{1e3 * mine:,.0f} ms",
                f"{1e3 * other:,.0f} ms ({name})" if other else "",
                mine / other if other else None,
                f"< {1e3 * P99_SECONDS:.0f} ms",
                # of a pace that is out of reach nothing is asked, only of the one after it
                None if m is not runs[-1] and mine >= P99_SECONDS else mine < P99_SECONDS,
            )

    def _official(self) -> Iterable[Line]:
        for m in self._of("official"):
            mine, other = self.rate("backend", m.keep_alive), m.outcome.rate
            yield Line(
                f"webhooks/s flat out, {connections(m.keep_alive)}",
                f"{mine:,.0f}",
                f"{other:,.2f} (label-studio-ml {self.release}, training in the request; {_share_late(m)})",
                mine / other if other else None,
                "",
                None,
            )

    def _closing(self) -> Iterable[Line]:
        for m in self._of("backend", CLOSING):
            what = f"webhooks/s while rounds close, {connections(m.keep_alive)}"
            goal = "each round closed, one training enqueued"
            yield Line(what, f"{m.outcome.rate:,.0f}", "", None, goal, bool(self.closed_once))

    def _lost(self) -> Line:
        mine = self._of("backend")
        taken = sum(len(m.outcome.taken) for m in mine)
        counts = [sum(getattr(m.kept, name) for m in mine if m.kept) for name in ("lost", "twice", "unknown")]
        refused = sum(m.outcome.not_taken for m in mine)
        told = f"{counts[0]} of {taken:,} lost, {counts[1]} twice, {counts[2]} unknown; {refused} not answered with 200"
        return Line("webhooks answered with 200 that are labels", told, "", None, "none lost", self.nothing_lost)

    @property
    def _yardsticks(self) -> list[str]:
        return list(dict.fromkeys(m.server for m in self.measured if m.server.startswith(YARDSTICK)))

    def _of(self, server: str, phase: str | None = None, keep_alive: bool | None = None) -> list[Measured]:
        return [
            m
            for m in self.measured
            if m.server == server and phase in (None, m.phase) and keep_alive in (None, m.keep_alive)
        ]


def _share_late(m: Measured) -> str:
    return f"{m.outcome.late / max(1, m.outcome.sent):.0%} later than Label Studio's 1 s"
