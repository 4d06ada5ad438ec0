"""What the demo shows of the loop: one line for each thing that happens, and a table of the rounds."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table

from backend.demo.watch import FinishedRound, Situation
from store.tables import RoundState

LINE_SECONDS = 5.0
"""Where lines cannot be replaced, the count of labels is printed no more often than this."""

COLUMNS = ("round", "labels", "accuracy", "estimated", "mean weight", "train", "draw", "publish")


class Screen:
    """On a terminal the last lines are redrawn in place; elsewhere each change is a line of its own."""

    def __init__(self, console: Console, table: bool) -> None:
        self.console = console
        self._table = table
        self._live = Live(console=console, refresh_per_second=8, transient=not table)
        self._before: Situation | None = None
        self._counted_at = 0.0

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._live.stop()

    def show(self, now: Situation, accuracies: Mapping[int, float]) -> None:
        in_place = self.console.is_terminal
        for line in events(self._before, now):
            if not (self._table and in_place):
                self.console.print(line)
        if self._table and not in_place:
            for round_ in _newly_surfaced(self._before, now):
                self.console.print("  ".join(f"{name} {cell}" for name, cell in _named(round_, accuracies)))
        if in_place:
            self._live.update(self._redrawn(now, accuracies))
        elif self._counting(now):
            self.console.print(sentence(now))
        self._before = now

    def _redrawn(self, now: Situation, accuracies: Mapping[int, float]) -> RenderableType:
        status = Spinner("dots", sentence(now))
        return Group(rounds_table(now.finished, accuracies), status) if self._table else status

    def _counting(self, now: Situation) -> bool:
        changed = self._before is None or self._before.labels != now.labels
        if not changed or now.state != RoundState.OPEN or time.monotonic() - self._counted_at < LINE_SECONDS:
            return False
        self._counted_at = time.monotonic()
        return True


def events(before: Situation | None, now: Situation) -> list[str]:
    """What has happened between two looks at the loop, one line each."""
    if before is None:
        return []
    known = {round_.number for round_ in before.finished}
    lines = [_trained(round_) for round_ in now.finished if round_.number not in known]
    judged = {round_.number for round_ in before.finished if round_.estimate}
    lines += [_judged(round_) for round_ in now.finished if round_.estimate and round_.number not in judged]
    if (now.number, now.state) != (before.number, before.state):
        if now.state == RoundState.CLOSED:
            lines.append(f"Round {now.number} is complete with {now.labels} labels: a model trains on them")
        elif now.state == RoundState.DRAWN:
            lines.append(f"Round {now.number}: {now.queue} tasks drawn, writing their weights to Label Studio")
        elif now.state == RoundState.OPEN:
            lines.append(f"Round {now.number} is open: {now.queue} tasks queued, {now.wanted} labels complete it")
    if now.failed and now.failed != before.failed:
        lines.append(f"[red]The job {now.due} failed: {now.failed}[/]")
    return lines


def sentence(now: Situation) -> str:
    """Where the loop stands."""
    if now.state == RoundState.OPEN:
        return f"Round {now.number}: {now.labels} of {now.wanted} labels"
    if now.at_the_end:
        return "Every task of the pool is labelled"
    doing = {
        None: "the first tasks are being drawn",
        RoundState.DRAWN: "the new queue is being published",
        RoundState.CLOSED: f"a model trains on its {now.labels} labels",
        RoundState.TRAINED: "the next tasks are being drawn",
    }
    return f"Round {now.number}: {doing.get(now.state, '')}"


def rounds_table(finished: tuple[FinishedRound, ...], accuracies: Mapping[int, float]) -> Table:
    table = Table(
        title="Rounds (0 is the seed). Accuracy: on held-out images, which a real project does not have.\n"
        "Estimated: from the labels the model asked for next, with the 95 % interval; costs no extra label.",
        title_justify="left",
    )
    for name in COLUMNS:
        table.add_column(name, justify="right")
    for round_ in finished:
        table.add_row(*(cell for _, cell in _named(round_, accuracies)))
    return table


def _named(round_: FinishedRound, accuracies: Mapping[int, float]) -> list[tuple[str, str]]:
    accuracy = accuracies.get(round_.number)
    cells = (
        str(round_.number),
        str(round_.labels),
        f"{accuracy:.1%}" if accuracy is not None else "-",
        str(round_.estimate or "-"),
        f"{round_.mean_weight:.2f}",
        *(
            f"{seconds:.1f} s" if seconds is not None else "-"
            for seconds in (round_.train_seconds, round_.draw_seconds, round_.publish_seconds)
        ),
    )
    return list(zip(COLUMNS, cells, strict=True))


def _newly_surfaced(before: Situation | None, now: Situation) -> list[FinishedRound]:
    """Rounds whose successor has just been published, so that all their figures are known."""
    shown = {round_.number for round_ in before.finished if round_.publish_seconds is not None} if before else set()
    return [one for one in now.finished if one.publish_seconds is not None and one.number not in shown]


def _judged(round_: FinishedRound) -> str:
    said = f"{round_.model_version} is right on {round_.estimate} of what is still unlabelled"
    return f"By the labels it asked for, {said}"


def _trained(round_: FinishedRound) -> str:
    if round_.model_version is None:
        return f"Round {round_.number} had nothing to learn from"
    return f"Round {round_.number}: {round_.model_version} trained on {round_.labels} labels"
