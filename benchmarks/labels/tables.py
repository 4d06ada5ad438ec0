"""The summaries as Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.labels.data import DATASETS
from benchmarks.labels.pools import TITLES
from benchmarks.labels.rules import BADGE, DEFAULT, MARGIN, RANDOM, RULES, Rule
from benchmarks.labels.summary import HELPED, HOLD_OUT, MARGINS, PLAIN, WEIGHTED, Against, Summary, mean_above
from benchmarks.page import table


def title(summary: Summary) -> str:
    return f"{DATASETS[summary.data].title}, {TITLES[summary.pool]}"


def headline(summaries: Sequence[Summary]) -> str:
    """A table for each data set: one row a rule, one column a pool."""
    parts = []
    for data in dict.fromkeys(summary.data for summary in summaries):
        pools = [summary for summary in summaries if summary.data == data]
        rules = [rule for rule in RULES.values() if any(rule in summary.rules for summary in pools)]
        rows = [
            [_name(rule), *(summary.ratio(rule.name).text() if rule in summary.rules else "" for summary in pools)]
            for rule in rules
        ]
        parts += [
            f"**{DATASETS[data].title}**, {seeds(pools)}",
            table(["rule", *(TITLES[summary.pool] for summary in pools)], rows),
        ]
    return "\n\n".join(parts)


def seeds(summaries: Sequence[Summary]) -> str:
    """How many each comparison has."""
    counts = sorted({len(summary.seeds) for summary in summaries})
    return " to ".join(str(count) for count in dict.fromkeys([counts[0], counts[-1]])) + " seeds"


def together(summaries: Sequence[Summary]) -> str:
    """The rules that were run on every pool, the means over them; empty where there is one pool alone."""
    everywhere = [rule for rule in RULES.values() if all(rule in summary.rules for summary in summaries)]
    others = [name for name in (RANDOM, MARGIN, BADGE) if RULES[name] in everywhere]
    if len(summaries) < 2 or not others:
        return ""
    rows = []
    for rule in everywhere:
        ratios = [summary.ratio(rule.name).value for summary in summaries]
        reached = sorted(math.inf if ratio is None else ratio for ratio in ratios)
        least, most = ("not reached" if math.isinf(end) else f"{end:.2f}" for end in (reached[0], reached[-1]))
        needed = least if math.isinf(reached[0]) else f"{least}–{most}"
        above = ["" if name == rule.name else mean_above(summaries, rule.name, name).text("+.2f") for name in others]
        rows.append([_name(rule), needed, *above])
    return table(["rule", "labels needed", *(f"above {RULES[name].title}" for name in others)], rows)


def details(summary: Summary) -> str:
    labels = [int(count) for count in summary.labels]
    shown = sorted({1, len(labels) // 3, len(labels) - 1})
    others = [name for name in (RANDOM, MARGIN, BADGE) if RULES[name] in summary.rules]
    head = [
        "rule",
        *(f"{labels[place]:,} labels" for place in shown),
        *(f"above {RULES[name].title}" for name in others),
    ]
    rows = [
        [
            _name(rule),
            *(summary.accuracy(rule.name)[place].text(".1f") for place in shown),
            *("" if rule.name == name else _against(summary.against(rule.name, name)) for name in others),
        ]
        for rule in summary.rules
    ]
    return table(head, rows)


def estimates(summaries: Sequence[Summary], which: int) -> str:
    """How far those of the product's rule are off: 0, of accuracy; 1, of class balance."""
    sources = (WEIGHTED, HELPED, PLAIN, MARGINS, HOLD_OUT)
    rows = []
    for summary in summaries:
        errors = summary.errors(DEFAULT) if RULES[DEFAULT] in summary.rules else {}
        if set(sources) <= set(errors):
            rows.append([title(summary), *(f"{errors[source][which]:.1f}" for source in sources)])
    return table(["pool", *sources], rows) if rows else ""


def _name(rule: Rule) -> str:
    return rule.title + (" †" if rule.labelled_pool else "")


def _against(found: Against) -> str:
    chance = "" if math.isnan(found.p) else f" (p {found.p:.3f})" if found.p >= 0.001 else " (p < 0.001)"
    return found.points.text("+.2f") + chance
