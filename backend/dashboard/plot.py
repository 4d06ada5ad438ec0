"""Where things stand in a plot: axes with round numbers, and marks placed along them, in the units of its SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Tick:
    at: float
    text: str


@dataclass(frozen=True)
class Axis:
    low: float
    high: float
    start: float
    end: float
    """Of the SVG, for `low` and `high`."""
    ticks: list[Tick]

    def at(self, value: float) -> float:
        span = self.high - self.low or 1.0
        return round(self.start + (value - self.low) / span * (self.end - self.start), 2)

    @classmethod
    def over(
        cls,
        values: Sequence[float],
        start: float,
        end: float,
        *,
        most: int,
        text: Callable[[float], str],
        whole: bool = True,
    ) -> Axis:
        """Long enough for all values, with at most so many ticks at round numbers; up to the next of these, where it is
        to end `whole`."""
        low, high = min(values), max(values)
        step = round_step((high - low) or abs(high) or 1.0, most)
        low = math.floor(low / step + 1e-9) * step
        if whole:
            high = math.ceil(high / step - 1e-9) * step
        high = high if high > low else low + step
        plain = cls(low, high, start, end, [])
        count = math.floor((high - low) / step + 1e-9)
        marks = [low + step * number for number in range(count + 1)]
        return cls(low, high, start, end, [Tick(plain.at(mark), text(mark)) for mark in marks])


def round_step(span: float, most: int) -> float:
    """The smallest of 1, 2 or 5 times a power of ten that divides the span into no more than `most` parts."""
    rough = span / most
    power = 10.0 ** math.floor(math.log10(rough))
    return next(times * power for times in (1, 2, 5, 10) if times * power >= rough * (1 - 1e-9))
