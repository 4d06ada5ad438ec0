"""What it would change to set the product otherwise: accuracy and estimates beside those of the default settings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.labels.data import DATASETS
from benchmarks.labels.pools import POOLS
from benchmarks.labels.rules import DEFAULT, FEWEST, FEWEST_BY_ENTROPY, RULES
from benchmarks.labels.summary import HELPED, Summary, mean_above
from benchmarks.page import table

INSTEAD = {
    "ent-paper": "no floor, as in the paper (not in a project)",
    "ent-mid": "`--floor 0.02 --sharpness 2`",
    "ent-low": "`--floor 0.01 --sharpness 2`",
    FEWEST_BY_ENTROPY: "`--floor 0.01 --sharpness 2 --cap 1`",
    "margin-floor": "`--rule margin`",
    "margin-low": "`--rule margin --floor 0.02 --cap 1`",
    FEWEST: "`--rule margin --floor 0.01 --sharpness 3 --cap 1`",
    "ent-unweighted": "`--cap 1`: every weight is 1",
    "ent-uncapped": "`--cap 20`: with this floor, none",
    "ent-calibrated": "`--calibrate`",
    "ent-pool": "scaled to the pool (in `iwes` only)",
    "ent-diverse": "one of each cluster (in `iwes.baselines` only)",
}
"""The rules that differ from the default's in a setting or two, and what has to be said to have them."""


def defaults(summaries: Sequence[Summary]) -> str:
    """Empty where the default was not run. A row has the pools on which both it and the default were run."""
    there = [summary for summary in summaries if RULES[DEFAULT] in summary.rules]
    named = [name for name in INSTEAD if any(RULES[name] in summary.rules for summary in there)]
    if not named:
        return ""
    data = list(dict.fromkeys(summary.data for summary in there))
    head = ["instead of the default", *(DATASETS[name].title for name in data), "accuracy off by", "classes off by"]
    rows = []
    for name in named:
        both = [summary for summary in there if RULES[name] in summary.rules]
        points = [_points([summary for summary in both if summary.data == one], name) for one in data]
        off = [_beside(both, name, which) for which in (0, 1)]
        rows.append([INSTEAD[name], *points, *off])
    return table(head, rows)


def _points(both: Sequence[Summary], name: str) -> str:
    """Of accuracy above the default's: the mean over rounds and pools."""
    if not both:
        return ""
    pools = "" if len(both) == len(POOLS) else " (clean)" if len(both) == 1 else f" ({len(both)} pools)"
    return mean_above(both, name, DEFAULT).text("+.2f") + pools


def _beside(both: Sequence[Summary], name: str, which: int) -> str:
    """How far off the estimates are, of accuracy (0) or class balance (1): the mean over the pools, with the default
    and with this."""
    found = [[summary.errors(rule)[HELPED][which] for summary in both] for rule in (DEFAULT, name)]
    usual, mine = (float(np.mean(errors)) for errors in found)
    return "" if np.isnan(mine) else f"{usual:.1f} → {mine:.1f}"
