"""`iwes estimate` for a terminal."""

from __future__ import annotations

from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from iwes import Estimate
from jobs.accuracy import Accuracy, Recall
from jobs.class_balance import ClassShare
from jobs.estimates import Estimates

BAR = 30
"""Signs that stand for the whole range from 0 to 1."""


def show(found: Estimates, title: str, console: Console) -> None:
    skipped = f", {found.skipped} skipped" if found.skipped else ""
    console.print(f"[bold]{escape(title)}[/]  {found.tasks} tasks, {found.labelled} of them labelled{skipped}")
    console.print(f"Judged: {escape(found.said)}", soft_wrap=True)
    for line in gist(found):
        console.print(line, soft_wrap=True)
    if found.curve:
        console.print(_curve(found.curve))
    if found.recall:
        console.print(_recall(found.recall))
    if found.balance:
        console.print(_balance(found.balance))


def gist(found: Estimates) -> list[str]:
    """The newest judged model, what it would take to know more, and the advice."""
    if found.judged is None:
        return []
    judged, lines = found.judged, []
    worth = f"worth {judged.worth:.0f} drawn by lot"
    lines.append(
        f"[bold]{_interval(judged.estimate)}[/] of what it has not seen is right "
        f"({judged.response.answered} labels, {worth}; {_missing(judged)})"
    )
    if found.labels_needed:
        lines.append(f"about {found.labels_needed} labels more in one round would tell it to ±{found.half_width:g}")
    if found.advice:
        colour = "green" if found.advice.stop else "yellow"
        lines.append(f"[{colour}]{'stop' if found.advice.stop else 'go on'}[/]: {escape(found.advice.reason)}")
    return lines


def _missing(judged: Accuracy) -> str:
    response = judged.response
    if not response.missing:
        return "none missing"
    return f"{response.missing} missing, {response.skipped} of them skipped"


def _curve(curve: tuple[Accuracy, ...]) -> Table:
    table = Table(
        "round", "model", "trained on", "right on the rest", "", "answered", "missing", "skipped", "worth", box=SIMPLE
    )
    table.title = "Accuracy of each model on what was unlabelled when it drew"
    for accuracy in curve:
        table.add_row(
            str(accuracy.round),
            escape(accuracy.model_version),
            "" if accuracy.trained_on is None else str(accuracy.trained_on),
            _interval(accuracy.estimate) + ("" if accuracy.complete else " so far"),
            _bar(accuracy.estimate),
            str(accuracy.response.answered),
            str(accuracy.response.missing),
            str(accuracy.response.skipped),
            f"{accuracy.worth:.0f}",
        )
    return table


def _recall(recalls: tuple[Recall, ...]) -> Table:
    table = Table("class", "recognised", "", "labels", box=SIMPLE, title="Recall of that model, by class")
    for recall in recalls:
        told = _interval(recall.estimate) if recall.estimate else f"[dim]{escape(recall.reason or '')}[/]"
        bar = _bar(recall.estimate) if recall.estimate else ""
        table.add_row(escape(recall.class_name), told, bar, str(recall.labels))
    return table


def _balance(shares: tuple[ClassShare, ...]) -> Table:
    table = Table("class", "share of all tasks", "", "labelled so", box=SIMPLE, title="Class balance of the whole pool")
    for share in shares:
        table.add_row(escape(share.class_name), _interval(share.estimate), _bar(share.estimate), str(share.known))
    return table


def _interval(estimate: Estimate) -> str:
    return f"{estimate.value:.1%} ({estimate.low:.1%}–{estimate.high:.1%})"


def _bar(estimate: Estimate) -> str:
    """The interval as a stretch of the line from 0 to 1, the estimate a point on it."""
    low, value, high = (min(BAR - 1, int(part * BAR)) for part in (estimate.low, estimate.value, estimate.high))
    signs = ["·"] * low + ["━"] * (high - low + 1) + ["·"] * (BAR - high - 1)
    signs[value] = "●"
    return "".join(signs)
