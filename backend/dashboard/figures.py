"""The plots of a project: what stands where in them. The templates only draw it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

import iwes
from backend.dashboard.plot import Axis
from backend.dashboard.words import share
from jobs.accuracy import Accuracy
from jobs.class_balance import ClassShare

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 22, 44
BARS = 16


@dataclass(frozen=True)
class Point:
    x: float
    y: float
    low: float
    high: float
    settled: bool
    """Whether its round is closed; until then it moves with each label."""
    text: str


@dataclass(frozen=True)
class Curve:
    x: Axis
    y: Axis
    points: list[Point]
    line: str
    band: str
    """The `points` of the SVG's polyline and of the polygon around it."""
    spoken: str


def curve(accuracies: Sequence[Accuracy]) -> Curve | None:
    """How good each model was on what was unlabelled, against the labels it was trained on."""
    found = [accuracy for accuracy in accuracies if accuracy.trained_on is not None]
    if not found:
        return None
    trained = [float(accuracy.trained_on or 0) for accuracy in found]
    x = Axis.over([0.0, *trained], LEFT, WIDTH - RIGHT, most=6, text=lambda value: f"{value:,.0f}")
    lowest = min(accuracy.estimate.low for accuracy in found)
    y = Axis.over([lowest, 1.0], HEIGHT - BOTTOM, TOP, most=5, text=lambda value: f"{value:.0%}")
    points = [
        Point(
            x.at(float(accuracy.trained_on or 0)),
            y.at(accuracy.estimate.value),
            y.at(accuracy.estimate.low),
            y.at(accuracy.estimate.high),
            accuracy.complete,
            f"{accuracy.model_version}, from {accuracy.trained_on:,} labels: {_interval(accuracy.estimate)} right; "
            f"{accuracy.response.answered} labels judge it, {accuracy.response.missing} are missing",
        )
        for accuracy in found
    ]
    upper = [f"{point.x},{point.high}" for point in points]
    lower = [f"{point.x},{point.low}" for point in reversed(points)]
    last = found[-1]
    return Curve(
        x,
        y,
        points,
        line=" ".join(f"{point.x},{point.y}" for point in points),
        band=" ".join(upper + lower),
        spoken=f"Accuracy on unlabelled tasks over {len(found)} models; the last, {last.model_version}: "
        f"{_interval(last.estimate)}",
    )


@dataclass(frozen=True)
class Bar:
    name: str
    value: float
    low: float
    high: float
    """In hundredths of the bar's length."""
    text: str
    known: int


def balance(shares: Sequence[ClassShare]) -> list[Bar]:
    longest = max((found.estimate.high for found in shares), default=0.0) or 1.0
    return [
        Bar(
            found.class_name,
            round(100 * found.estimate.value / longest, 2),
            round(100 * found.estimate.low / longest, 2),
            round(100 * found.estimate.high / longest, 2),
            _interval(found.estimate),
            found.known,
        )
        for found in shares
    ]


@dataclass(frozen=True)
class Column:
    x: float
    y: float
    width: float
    height: float
    at_cap: bool
    text: str


@dataclass(frozen=True)
class WeightPlot:
    x: Axis
    y: Axis
    columns: list[Column]
    labels: int
    share_capped: float
    effective_size: float
    spoken: str


def weight_plot(weights: NDArray[np.float64], cap: float) -> WeightPlot | None:
    """How the training weights of labels that models asked for are spread, from 1 to the cap, and how many are at it:
    those have a column of their own, behind the others."""
    if not len(weights):
        return None
    top = max(cap, float(weights.max()), 1.001)
    at_cap = weights >= cap - 1e-9
    counts, edges = np.histogram(weights[~at_cap], bins=BARS, range=(1.0, top))
    counts = np.append(counts, at_cap.sum())
    step = (top - 1.0) / BARS
    edges = np.append(edges, top + step)
    x = Axis.over([1.0, top + step], LEFT, WIDTH - RIGHT, most=5, text=lambda value: f"{value:g}", whole=False)
    y = Axis.over([0.0, float(counts.max())], HEIGHT - BOTTOM, TOP, most=4, text=lambda value: f"{value:,.0f}")
    columns = [
        Column(
            x.at(low) + 1,
            y.at(count),
            max(1.0, round(x.at(high) - x.at(low) - 2, 2)),
            round(y.start - y.at(count), 2),
            number == BARS,
            f"{count} labels at the cap" if number == BARS else f"{count} labels from {low:.2f} to {high:.2f}",
        )
        for number, (count, (low, high)) in enumerate(zip(counts.tolist(), pairwise(edges.tolist()), strict=True))
    ]
    capped = float(at_cap.mean())
    size = iwes.effective_size(weights)
    spoken = f"Weights of {len(weights)} labels from 1 to {cap:g}; {share(capped)} are at the cap"
    return WeightPlot(x, y, columns, len(weights), capped, size, spoken)


def _interval(estimate: iwes.Estimate) -> str:
    return f"{share(estimate.value)} ({share(estimate.low)}–{share(estimate.high)})"
