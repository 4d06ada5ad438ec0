"""How many times faster each selection is than that of each peer, as bars on a logarithmic axis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.speed.report import Report
from benchmarks.speed.tables import times
from benchmarks.subsets.figure import STYLE

# Okabe and Ito's colours, which people tell apart whatever their colour vision; the names stand beside the bars
COLOURS = {
    "modAL": "#E69F00",
    "Baal": "#56B4E9",
    "scikit-activeml": "#0072B2",
    "reference algorithm": "#555555",
    "small-text": "#009E73",
    "cleanlab ActiveLab": "#CC79A7",
}
TITLE = 1.0
"""Height of a task's name above its bars, in bars."""


def draw(report: Report, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    height = 0.27 * (len(report.times) + (TITLE + 0.25) * len(report.tasks())) + 1.1
    with pyplot.rc_context({**STYLE, "svg.hashsalt": "speed"}):
        figure, axes = pyplot.subplots(figsize=(8.5, height), layout="constrained")
        _bars(axes, report)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=150)
        pyplot.close(figure)


def _bars(axes: Any, report: Report) -> None:
    places: dict[float, str] = {}
    below = 0.0
    label: str | None = "wanted at least"
    ratios = [1.0, *(one.faster for one in report.times)]
    for (rows, task), found in report.tasks().items():
        _above(axes, below, f"{rows:,} rows: {task}")
        for one in found:
            below += TITLE if one is found[0] else 1
            places[below] = one.peer
            axes.barh(below, one.faster - 1, 0.78, left=1, color=COLOURS.get(one.peer, "#999999"))
            few = "" if one.picks == report.made.settings.k else f" (from {one.picks} picks)"
            _beside(axes, max(1.0, one.faster), below, times(one.faster) + few)
            if one.wanted is not None:
                axes.plot([one.wanted] * 2, [below - 0.39, below + 0.39], color="black", linewidth=2, label=label)
                label = None
        below += 1.25
    axes.set_xscale("log")
    if min(ratios) < 1:
        axes.axvline(1, color="black", linewidth=1)
    axes.set_yticks(list(places), list(places.values()))
    axes.set_ylim(below - 0.5, -0.6)
    axes.set_xlim(min(ratios), 2.5 * max(ratios))  # with room for the figure beside the longest
    axes.xaxis.set_major_formatter(lambda ratio, _: f"{ratio:,g}×" if ratio >= 1 else f"1/{1 / ratio:,g}")
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("times faster than the peer (processor time, logarithmic)")
    axes.set_title("Speed of selection beside peers", loc="left")
    if label is None:
        axes.legend(loc="lower right", frameon=False)


def _above(axes: Any, place: float, text: str) -> None:
    looks = {"va": "center", "fontsize": 9, "weight": "bold"}
    axes.annotate(text, (0, place), (4, 0), xycoords=("axes fraction", "data"), textcoords="offset points", **looks)


def _beside(axes: Any, ratio: float, place: float, text: str) -> None:
    axes.annotate(text, (ratio, place), (4, 0), textcoords="offset points", va="center", fontsize=8.5)
