"""The learning curves, and beside them what each rule gains over random, as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.subsets.rules import FULL, RANDOM, RULES
from benchmarks.subsets.summary import Mean, Summary

# Okabe and Ito's colours, which people tell apart whatever their colour vision; marks differ as well
LOOKS = {
    "random": ("#555555", "o"),
    "margin": ("#E69F00", "s"),
    "dis": ("#0072B2", "D"),
    "dis-floor": ("#56B4E9", "v"),
    "loss": ("#D55E00", "^"),
    "ent": ("#009E73", "P"),
}
STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "axes.axisbelow": True,
    "svg.hashsalt": "subsets",  # the same figures give the same file
}


def draw(summary: Summary, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with pyplot.rc_context(STYLE):
        figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 5.6), layout="constrained")
        _curves(left, summary)
        _gains(right, summary)
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=150)
        pyplot.close(figure)


def _curves(axes: Any, summary: Summary) -> None:
    full = summary.accuracy(FULL)[0]
    count = summary.of(FULL)[0].points[0].labels
    for rule in summary.rules:
        _line(axes, rule.name, summary.accuracy(rule.name), summary)
    axes.axhline(full.value, color="black", linestyle="--", linewidth=1.2)
    _on_line(axes, full.value, f"{RULES[FULL].title}: {count:,} labels, {full.value:.1f} %")
    axes.margins(y=0.08)
    axes.set_title("Fashion-MNIST: the model trained on the subset", loc="left")
    axes.set_ylabel("right on the test set, %")
    _labels_below(axes, summary)


def _gains(axes: Any, summary: Summary) -> None:
    axes.axhline(0, color=LOOKS[RANDOM][0], linewidth=1.2)
    for rule in summary.rules:
        if rule.name != RANDOM:
            _line(axes, rule.name, summary.over_random(rule.name), summary)
    axes.set_title("What it gains over random, same seed set", loc="left")
    axes.set_ylabel("percentage points above random")
    _labels_below(axes, summary)


def _line(axes: Any, name: str, means: list[Mean], summary: Summary) -> None:
    """Moved aside a little, so that error bars do not cover each other."""
    order = [rule.name for rule in summary.rules]
    aside = (order.index(name) - (len(order) - 1) / 2) * 0.035 * summary.settings.k
    colour, mark = LOOKS[name]
    axes.errorbar(
        [labels + aside for labels in summary.labels],
        [mean.value for mean in means],
        yerr=[mean.error for mean in means],
        color=colour,
        marker=mark,
        markersize=5.5,
        linewidth=1.6,
        elinewidth=1.1,
        capsize=2.5,
        label=RULES[name].title,
    )


def _on_line(axes: Any, height: float, text: str) -> None:
    axes.annotate(
        text,
        (0.01, height),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        fontsize=9,
    )


def _labels_below(axes: Any, summary: Summary) -> None:
    axes.set_xticks(summary.labels, [f"{labels:,}" for labels in summary.labels])
    axes.set_xlabel(f"labels used (mean and standard error of {len(summary.seeds)} seeds)")
