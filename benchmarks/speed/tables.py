"""The report as Markdown."""

from __future__ import annotations

from benchmarks.page import table
from benchmarks.speed.facts import Draws, Times
from benchmarks.speed.report import Report
from benchmarks.speed.settings import Settings

PACKAGES = {
    "modAL": "modAL-python",
    "Baal": "baal",
    "scikit-activeml": "scikit-activeml",
    "small-text": "small-text",
    "cleanlab ActiveLab": "cleanlab",
}
"""What a peer is installed from; the reference algorithm is not."""


def tables(report: Report, picture: str) -> str:
    parts = [
        "## Speed of selection",
        _explained(report.made.settings),
        _times(report),
        "\n".join([_memory(report), *(_draws(one) for one in report.draws)]),
        f"![How many times faster each selection is than that of each peer]({picture})",
    ]
    return "\n\n".join(part for part in parts if part)


def _explained(settings: Settings) -> str:
    slow = "" if settings.full else f"; BADGE and k-center of peers are extrapolated from {settings.few} picks"
    return (
        f"What it takes to choose {settings.k:,} rows ({settings.classes} classes, {settings.features} features), for "
        f"us and for a peer, in one process on the same arrays, one thread, processor times{slow}. A draw by IWeS is "
        "another rule than the peers' top k; a lazy one need not look at every row."
    )


def _times(report: Report) -> str:
    head = ["selection", "ours", "peer", "its time", "faster by", "wanted", "picks"]
    rows = []
    for (count, task), found in report.tasks().items():
        title = f"{count:,} rows: {task}"
        for place, one in enumerate(found):
            peer = _versioned(one.peer, report.made.versions)
            ours = "" if place else milliseconds(one.ours)
            rows.append([title if not place else "", ours, peer, milliseconds(one.theirs), *_judged(one)])
    return table(head, rows)


def _judged(one: Times) -> list[str]:
    """How much faster, against what is wanted, and whether the picks are the same."""
    same = {None: "", True: f"all {one.compared:,} the same", False: f"not the same {one.compared:,}"}[one.same]
    wanted = "" if one.wanted is None else f"≥ {one.wanted:g}×"
    return [times(one.faster), wanted + (": not reached" if one.short else ""), same]


def _memory(report: Report) -> str:
    if not (found := report.memory):
        return ""
    each = ", ".join(f"{one.task} {one.arrays:.2f}" for one in found)
    return (
        f"- Peak extra memory at {found[0].rows:,} rows: {each} times the array of scores, which is included "
        f"(wanted: below {found[0].wanted:g})."
    )


def _draws(one: Draws) -> str:
    first = "the same first pick" if one.first else "another first pick"
    return f"- BADGE draws as {one.peer} does: {first}; χ² of {one.pairs:,} pairs of later picks, p = {one.p:.2f}."


def _versioned(peer: str, versions: dict[str, str]) -> str:
    return f"{peer} {versions.get(PACKAGES.get(peer, ''), '')}".strip()


def milliseconds(seconds: float) -> str:
    value = seconds * 1e3
    return f"{value:,.1f} ms" if value < 100 else f"{value:,.0f} ms"


def times(ratio: float) -> str:
    return f"{ratio:,.1f}×" if ratio < 100 else f"{ratio:,.0f}×"
