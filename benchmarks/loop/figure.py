"""Where the time of each round goes, and beside it how many labels kept annotators waiting for how long."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.loop import official, waits
from benchmarks.loop.beside import ALONE, OURS
from benchmarks.loop.report import Report
from benchmarks.loop.split import PARTS
from benchmarks.loop.tables import title
from benchmarks.subsets.figure import STYLE

# Okabe and Ito's colours, which people tell apart whatever their colour vision
COLOURS = {
    "label": "#56B4E9",
    "wait": "#999999",
    "train": "#0072B2",
    "draw": "#009E73",
    "publish": "#E69F00",
    "serve": "#CC79A7",
}
BARE = {"train": "#0072B2", "forward": "#009E73"}
LINES = {
    ALONE: ("#555555", ":"),
    OURS: ("#0072B2", "-"),
    official.EVERY_K: ("#E69F00", "--"),
    official.EVERY_LABEL: ("#D55E00", "-."),
}
SHORTEST = 0.03
"""Seconds: where the axis begins."""


def draw(report: Report, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with pyplot.rc_context({**STYLE, "svg.hashsalt": "loop"}):
        figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.9), layout="constrained")
        _bars(left, report)
        _waits(right, report)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=150)
        pyplot.close(figure)


def _bars(axes: Any, report: Report) -> None:
    """For each round the loop, part by part, and below it the bare work."""
    places = range(len(report.rounds))
    lefts = [0.0] * len(report.rounds)
    for part, name in PARTS.items():
        widths = [getattr(one.split, part) for one in report.rounds]
        axes.barh([place - 0.17 for place in places], widths, 0.42, left=lefts, color=COLOURS[part], label=name)
        lefts = [start + width for start, width in zip(lefts, widths, strict=True)]
    starts = [0.0] * len(report.rounds)
    for part, colour in BARE.items():
        widths = [getattr(one.bare, part) for one in report.rounds]
        looks = {"color": colour, "alpha": 0.55, "hatch": "//", "edgecolor": "white", "linewidth": 0}
        axes.barh([place + 0.22 for place in places], widths, 0.24, left=starts, **looks)
        starts = [start + width for start, width in zip(starts, widths, strict=True)]
    for place, (start, one) in enumerate(zip(starts, report.rounds, strict=True)):
        axes.annotate(f"bare: {one.bare.whole:.2f} s", (start, place + 0.22), (4, 0), **_beside())
    for place, one in enumerate(report.rounds):
        axes.annotate(f"{one.split.whole:.1f} s", (one.split.whole, place - 0.17), (4, 0), **_beside())
    axes.set_yticks(list(places), [f"{one.examples}" for one in report.rounds])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.margins(x=0.12)
    axes.set_ylabel("labels")
    axes.set_xlabel(f"seconds since the {report.settings.k}th label of the round")
    axes.set_title("From the last label to the next batch", loc="left")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3, frameon=False)


def _beside() -> dict[str, Any]:
    return {"textcoords": "offset points", "va": "center", "fontsize": 8.5}


def _waits(axes: Any, report: Report) -> None:
    """The share of labels that kept their annotator waiting for longer."""
    for side in report.sides:
        values = sorted(max(SHORTEST, value) for value in waits.seconds(side.waits, "both"))
        if values:
            shares = [100 * (len(values) - place) / len(values) for place in range(len(values))]
            colour, line = LINES[side.name]
            axes.plot(values, shares, color=colour, linestyle=line, linewidth=1.8, label=title(side.name, report))
            axes.plot(values[-1:], shares[-1:], color=colour, marker="o", markersize=4.5)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_yticks([100, 10, 1, 0.2], ["all", "10 %", "1 %", "0.2 %"])
    axes.yaxis.minorticks_off()
    ticks = [tick for tick in (0.1, 0.3, 1, 3, 10, 30, 100) if tick <= 1.3 * _longest(report)]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.xaxis.minorticks_off()
    axes.set_xlabel("seconds waited for submit and next task together")
    axes.set_ylabel("labels that took longer")
    axes.set_title("What annotators wait while models train", loc="left")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False)


def _longest(report: Report) -> float:
    return max((wait.both for side in report.sides for wait in side.waits), default=1.0)
