"""The summary as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.page import table
from benchmarks.subsets.rules import FULL, RANDOM, RULES, Rule
from benchmarks.subsets.summary import Mean, Summary


def tables(summary: Summary) -> str:
    count = len(summary.seeds)
    return "\n\n".join(
        [
            f"Right answers on the test set in %, mean ± standard error over {count} seeds:",
            _accuracy(summary),
            "Points above random, with the same seed set and first model (paired by seed), mean ± standard error:",
            _difference(summary),
            f"The weights of the {summary.labels[-1]:,} selected labels, and what it took, means over seeds:",
            _weights(summary),
        ]
    )


def _accuracy(summary: Summary) -> str:
    full = summary.of(FULL)
    pool = full[0].points[0].labels
    head = ["rule", *(f"{labels:,} labels" for labels in summary.labels), f"{pool:,} labels"]
    rows = [[rule.title, *_texts(summary.accuracy(rule.name)), ""] for rule in summary.rules]
    epochs = sorted({run.points[0].epochs for run in full})
    title = f"{RULES[FULL].title}, {' to '.join(str(number) for number in {epochs[0]: 0, epochs[-1]: 0})} epochs"
    return table(head, [*rows, [title, *[""] * len(summary.labels), summary.accuracy(FULL)[0].text()]])


def _difference(summary: Summary) -> str:
    after_seed = summary.labels[1:]
    head = ["rule", *(f"{labels:,} labels" for labels in after_seed), "all rounds", f"better at {after_seed[-1]:,}"]
    rows = [
        [
            rule.title,
            *_texts(summary.over_random(rule.name)[1:], "+.2f"),
            summary.over_random_in_all_rounds(rule.name).text("+.2f"),
            f"{summary.seeds_better(rule.name)} of {len(summary.seeds)} seeds",
        ]
        for rule in summary.rules
        if rule.name != RANDOM
    ]
    return table(head, rows)


def _weights(summary: Summary) -> str:
    head = ["rule", "share capped", "effective sample size", "largest weight (share of the drawn)"]
    head += ["tasks looked at per round", "epochs of the last training", "processor time"]
    return table(head, [_of_weights(rule, summary) for rule in summary.rules])


def _of_weights(rule: Rule, summary: Summary) -> list[str]:
    runs = summary.of(rule.name)
    rounds = max(1, summary.settings.rounds)
    return [
        rule.title,
        f"{np.mean([run.share_capped for run in runs]):.0%}" if rule.weighted else "all weights are 1",
        f"{np.mean([run.effective_size for run in runs]):,.0f}",
        f"{np.mean([run.largest_weight for run in runs]):.3g} ({np.mean([run.share_largest for run in runs]):.0%})",
        f"{np.mean([run.examined for run in runs]) / rounds:,.0f}",
        f"{np.mean([run.points[-1].epochs for run in runs]):.0f}",
        f"{np.mean([run.cpu_seconds for run in runs]):,.0f} s",
    ]


def _texts(means: Sequence[Mean], style: str = ".2f") -> list[str]:
    return [mean.text(style) for mean in means]
