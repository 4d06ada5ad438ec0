"""What was measured, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import mean

from benchmarks.loop import official, waits
from benchmarks.loop.beside import ALONE, OURS, Side
from benchmarks.loop.report import Report
from benchmarks.loop.split import PARTS, Round
from benchmarks.page import table

NAMES = {
    ALONE: "Label Studio alone",
    OURS: "this backend",
    official.EVERY_K: "official, trains every {k} labels",
    official.EVERY_LABEL: "official, trains with every label",
}


def title(name: str, report: Report) -> str:
    return NAMES[name].format(k=report.settings.k)


def tables(report: Report, picture: str) -> str:
    settings, made = report.settings, report.made_with
    return "\n\n".join(
        [
            "## The loop",
            f"Seconds from the {settings.k}th label to the next batch, in a pool of {settings.pool:,} digits; Label "
            f"Studio {made['label-studio']} and all else on {made['cores']} cores. Bare is the same training and as "
            "many forward passes in one plain process, the median of "
            f"{settings.repeats}. {_busy(report.other_cores.values())}",
            _loop(report.rounds),
            _in_words(report.rounds),
            "### Annotators beside a training",
            f"{settings.annotators} annotators who look at each picture for {settings.look:g} s give {settings.labels} "
            "labels; seconds that they wait for each, p50 / p99 / longest. "
            f"{_busy(side.other_cores for side in report.sides)}",
            _waits(report),
            "What the server was told of those labels. Label Studio sends a webhook once and waits 1 s.",
            _known(report),
            f"![The parts of the loop in each round, and how long annotators wait]({picture})",
        ]
    )


def _busy(cores: Iterable[float]) -> str:
    found = sorted(cores)
    return f"Programs of others took {found[0]:.1f} to {found[-1]:.1f} cores meanwhile."


def _loop(rounds: Sequence[Round]) -> str:
    head = ["labels", *PARTS.values(), "in all", "bare training", "bare passes", "images scored", "in all ÷ bare"]
    rows = [[f"{one.examples}", *_cells(one), f"{one.scored:,}", f"{one.ratio:.1f}"] for one in rounds]
    columns = list(zip(*([*_values(one), one.scored] for one in rounds), strict=True))
    *seconds, scored = (mean(column) for column in columns)
    whole, bare = sum(one.split.whole for one in rounds), sum(one.bare.whole for one in rounds)
    last = ["mean", *(f"{value:.2f}" for value in seconds), f"{scored:,.0f}", f"{whole / bare:.1f}"]
    return table(head, [*rows, last])


def _cells(one: Round) -> list[str]:
    return [f"{value:.2f}" for value in _values(one)]


def _values(one: Round) -> list[float]:
    return [*(getattr(one.split, part) for part in PARTS), one.split.whole, one.bare.train, one.bare.forward]


def _in_words(rounds: Sequence[Round]) -> str:
    bare = sum(one.bare.whole for one in rounds)
    inside = sum(one.split.ours for one in rounds)
    studio = 1 - inside / sum(one.split.whole for one in rounds)
    return (
        f"Waiting, training and draw together are {inside / bare:.1f} × the bare work; the other parts, {studio:.0%} "
        "of the whole, are Label Studio's own work on the label, the batch and the next task. The draw fetches images "
        "that were not fetched while people labelled; the bare work has them in memory."
    )


def _waits(report: Report) -> str:
    head = ["", *waits.KINDS.values(), "labels", "minutes", "trainings"]
    return table(head, [[title(side.name, report), *_waited(side)] for side in report.sides])


def _waited(side: Side) -> list[str]:
    cells = []
    for kind in waits.KINDS:
        values = waits.seconds(side.waits, kind)
        cells.append(" / ".join(f"{waits.at_share(values, share):.2f}" for share in waits.SHARES.values()))
    trainings = f"{len(side.trainings)}" if side.name != ALONE else ""
    return [*cells, f"{len(side.waits)}", f"{side.seconds / 60:.1f}", trainings]


def _known(report: Report) -> str:
    head = ["", "labels in Label Studio", "webhooks given up", "unknown to it", "after a reconcile", "requests refused"]
    rows = []
    for side in report.sides:
        given_up = "" if side.unknown is None else f"{side.given_up}"
        known = ["" if count is None else f"{count}" for count in (side.unknown, side.unknown_after)]
        rows.append([title(side.name, report), f"{side.annotations}", given_up, *known, f"{side.refused}"])
    return table(head, rows)
