"""The learning curves of the best-known rules on every pool, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.labels.rules import BADGE, DEFAULT, FEWEST, MARGIN, RANDOM, RULES
from benchmarks.labels.summary import Summary
from benchmarks.labels.tables import title
from benchmarks.subsets.figure import STYLE

# Okabe and Ito's colours, which people tell apart whatever their colour vision; marks differ as well
LOOKS = {
    RANDOM: ("#555555", "o"),
    MARGIN: ("#E69F00", "s"),
    BADGE: ("#CC79A7", "v"),
    "coreset": ("#56B4E9", "X"),
    "ent-paper": ("#D55E00", "^"),
    DEFAULT: ("#009E73", "P"),
    FEWEST: ("#0072B2", "D"),
}
COLUMNS = 3


def draw(summaries: Sequence[Summary], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = -(-len(summaries) // COLUMNS)
    columns = min(COLUMNS, len(summaries))
    with pyplot.rc_context({**STYLE, "svg.hashsalt": "labels"}):
        figure, grid = pyplot.subplots(
            rows, columns, figsize=(4.2 * columns, 3.6 * rows + 0.9), layout="constrained", squeeze=False
        )
        for axes, summary in zip(grid.flat, summaries, strict=False):
            _curves(axes, summary)
        for axes in grid.flat[len(summaries) :]:
            axes.set_axis_off()
        figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)


def _curves(axes: Any, summary: Summary) -> None:
    for name, (colour, mark) in LOOKS.items():
        if RULES[name] not in summary.rules:
            continue
        means = summary.accuracy(name)
        values = [mean.value for mean in means]
        axes.plot(summary.labels, values, color=colour, marker=mark, markersize=4.5, label=RULES[name].title)
        low, high = ([mean.value + sign * mean.error for mean in means] for sign in (-1, 1))
        axes.fill_between(summary.labels, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.set_title(title(summary), loc="left", fontsize=10)
    axes.set_xlabel("labels")
    axes.set_ylabel("right on the test set, %")
