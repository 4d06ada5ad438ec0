"""The best-known rules on every pool, as pictures: labels needed, learning curves, and what labels say of the pool."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.labels.rules import BADGE, DEFAULT, FEWEST, FEWEST_BY_ENTROPY, MARGIN, RANDOM, RULES
from benchmarks.labels.summary import HELPED, HOLD_OUT, MARGINS, PLAIN, WEIGHTED, Summary
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
    FEWEST_BY_ENTROPY: ("#000000", "d"),
    FEWEST: ("#0072B2", "D"),
}
SOURCES = {
    WEIGHTED: ("#009E73", "P"),
    HELPED: ("#0072B2", "D"),
    HOLD_OUT: ("#555555", "o"),
    PLAIN: ("#D55E00", "^"),
    MARGINS: ("#E69F00", "s"),
}
COLUMNS = 3
NOT_REACHED = 1.25
"""Where a rule stands that never gets as far as random."""


def draw_needed(summaries: Sequence[Summary], path: Path) -> None:
    """One row a pool, one mark a rule; random's own labels are the line at 1."""
    pyplot = _pyplot()
    rules = {name: look for name, look in LOOKS.items() if name != RANDOM}
    with pyplot.rc_context({**STYLE, "svg.hashsalt": "needed"}):
        figure, axes = pyplot.subplots(figsize=(9.6, 0.36 * len(summaries) + 1.6), layout="constrained")
        axes.axvline(1, color=LOOKS[RANDOM][0], linewidth=1.2)
        for order, (name, (colour, mark)) in enumerate(rules.items()):
            there = [(row, summary) for row, summary in enumerate(summaries) if RULES[name] in summary.rules]
            ratios = [summary.ratio(name) for _, summary in there]
            places = [row + 0.09 * (order - (len(rules) - 1) / 2) for row, _ in there]
            values = [NOT_REACHED if ratio.value is None else ratio.value for ratio in ratios]
            errors = [0.0 if ratio.value is None or ratio.error != ratio.error else ratio.error for ratio in ratios]
            axes.errorbar(values, places, xerr=errors, fmt="none", ecolor=colour, elinewidth=0.8, alpha=0.6)
            axes.plot(values, places, mark, color=colour, markersize=6, label=RULES[name].title)
        axes.set_yticks(range(len(summaries)), [title(summary) for summary in summaries])
        axes.set_ylim(len(summaries) - 0.5, -0.5)
        axes.set_xticks([0.2, 0.4, 0.6, 0.8, 1, NOT_REACHED], ["0.2", "0.4", "0.6", "0.8", "random", "not reached"])
        axes.set_xlabel("labels needed for what random reaches with its last batch, as a part of random's")
        figure.legend(loc="outside upper center", ncols=3, frameon=False)
        _save(figure, path)


def draw_estimates(summaries: Sequence[Summary], path: Path) -> None:
    """What the labels of the default settings say of the pool, and how far that is off; one row a pool."""
    pyplot = _pyplot()
    there = [summary for summary in summaries if RULES[DEFAULT] in summary.rules]
    errors = [summary.errors(DEFAULT) for summary in there]
    with pyplot.rc_context({**STYLE, "svg.hashsalt": "estimates"}):
        figure, panels = pyplot.subplots(
            1, 2, figsize=(11, 0.3 * len(there) + 1.6), layout="constrained", sharey=True, squeeze=False
        )
        for which, (axes, what) in enumerate(zip(panels[0], ("accuracy", "class balance"), strict=True)):
            for source, (colour, mark) in SOURCES.items():
                values = [found[source][which] if source in found else math.nan for found in errors]
                axes.plot(values, range(len(there)), mark, color=colour, markersize=6, label=source)
            axes.set_title(f"{what}, points off", loc="left", fontsize=10)
            axes.set_xlim(left=0)
        panels[0][0].set_yticks(range(len(there)), [title(summary) for summary in there])
        panels[0][0].set_ylim(len(there) - 0.5, -0.5)
        figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
        _save(figure, path)


def draw(summaries: Sequence[Summary], path: Path) -> None:
    pyplot = _pyplot()
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
        _save(figure, path)


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    _pyplot().close(figure)


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
