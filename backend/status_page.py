"""`iwes status` for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from backend.estimates_page import gist
from jobs.status import ProjectStatus, QueueStatus, RoundStatus, SubsetStatus
from store.tables import RoundState, now

MEANING = {
    RoundState.DRAWN: "being published",
    RoundState.OPEN: "collecting labels",
    RoundState.CLOSED: "training",
    RoundState.TRAINED: "trained",
}

DOING = {
    "described": "describing images",
    "scored": "scoring tasks until enough are drawn",
    "reviewed": "looking at labels",
    "written": "writing weights",
    "fetched": "fetching images for the next draw",
}


def show(projects: Sequence[ProjectStatus], queue: QueueStatus, console: Console | None = None) -> None:
    console = console or Console()
    if not projects:
        console.print("no project yet: connect one with `iwes connect --url … --token … --project …`")
    for project in projects:
        if project.root is None:
            _show_project(console, project)
        else:
            _show_data_set(console, project)
    if not projects or any(project.root is None for project in projects):
        _show_queue(console, queue)


def _show_project(console: Console, project: ProjectStatus) -> None:
    state = "" if project.connected else "  [yellow](disconnected)[/]"
    console.print(f"[bold]{escape(project.title)}[/]  {project.studio_url}/projects/{project.studio_id}/data{state}")
    came = f", {project.came_labelled} came with one" if project.came_labelled else ""
    console.print(f"  {project.tasks} tasks, {project.unlabelled} without a label{came}")
    console.print(f"  mode {project.mode}: {project.drawn_by}")
    if project.labels_until_retrain is not None:
        console.print(f"  {project.labels_until_retrain} labels until the next training")
    console.print(f"  last reconcile: {_ago(project.reconciled_at)}")
    if project.estimates.judged:
        console.print(f"  judged: {escape(project.estimates.said)}")
    for line in gist(project.estimates):
        console.print(f"  {line}")
    for problem, count in project.problems.items():
        console.print(f"  [yellow]{count} ×[/] {escape(problem)}")
    if project.rounds:
        console.print(_rounds_table(project.rounds))
    for subset in project.subsets:
        _show_subset(console, subset)


def _show_data_set(console: Console, project: ProjectStatus) -> None:
    """One outside of Label Studio, whose subsets are selected by whoever calls `iwes select`."""
    console.print(f"[bold]{escape(project.title)}[/]  images below {escape(str(project.root))}")
    console.print(f"  {project.tasks} images, {project.came_labelled} of them with a label; {project.network}")
    for problem, count in project.problems.items():
        console.print(f"  [yellow]{count} ×[/] {escape(problem)}")
    for subset in project.subsets:
        _show_subset(console, subset)


def _show_subset(console: Console, subset: SubsetStatus) -> None:
    state = f", [cyan]{escape(subset.state)}[/]" if subset.state else ", [green]complete[/]"
    console.print(
        f"  [bold]subset {subset.name}[/] by IWeS-{subset.rule}: {subset.selected} of {subset.target} tasks{state}; "
        f"worth {subset.effective_size:.0f} equally weighted labels, {subset.share_capped:.0%} of the drawn weights at "
        f"their cap, {subset.doubts} labels worth a second look"
    )
    if subset.rounds:
        console.print(_subset_table(subset.rounds))


def _subset_table(rounds: Sequence[RoundStatus]) -> Table:
    table = Table("round", "state", "drawn by", "rule", "tasks", "then trained", box=SIMPLE)
    for round_ in rounds:
        drawn_by = round_.model_version or "chance"
        table.add_row(
            str(round_.number), MEANING[round_.state], drawn_by, round_.rule, str(round_.drawn), _outcome(round_)
        )
    return table


def _rounds_table(rounds: Sequence[RoundStatus]) -> Table:
    table = Table(
        "round",
        "state",
        "drawn by",
        "its accuracy on the rest",
        "tasks",
        "labels",
        "skipped",
        "then trained",
        box=SIMPLE,
    )
    for round_ in rounds:
        table.add_row(
            str(round_.number),
            MEANING[round_.state],
            round_.model_version or "chance",
            str(round_.accuracy or ""),
            str(round_.drawn),
            f"{round_.labels} of {round_.wanted}",
            str(round_.skipped),
            _outcome(round_),
        )
    return table


def _outcome(round_: RoundStatus) -> str:
    if round_.model is None:
        return f"[red]no model[/]: {escape(round_.problem)}" if round_.problem else ""
    held_out = round_.model.metrics.get("held_out_accuracy")
    told = f", {held_out:.1%} of held-out labels right" if held_out is not None else ""
    beside = f"; [red]{escape(round_.problem)}[/]" if round_.problem else ""
    return f"{round_.model.version} on {round_.model.examples} labels{told}{beside}"


def progress_words(told: Mapping[str, Any]) -> str:
    for what, doing in DOING.items():
        if what in told:
            return f"{doing}, {told[what]} of {told['of']}"
    right = "" if told.get("accuracy") is None else f", {told['accuracy']:.1%} of held-out labels right"
    return (
        f"epoch {told['epoch']} of at most {told['of']}, loss {told['loss']:.3f}{right}, "
        f"at most {told['seconds_left']:.0f} s left"
    )


def progress_done(told: Mapping[str, Any]) -> int:
    """How far it is on the way to `of`."""
    return next((int(told[what]) for what in ("epoch", *DOING) if what in told), 0)


def _show_queue(console: Console, queue: QueueStatus) -> None:
    if not queue.reachable:
        console.print("[red]Redis does not answer[/]: no job runs until it is back; `iwes up` starts one")
        return
    colour = "green" if queue.workers else "red"
    alive = f"{queue.workers} worker{'' if queue.workers == 1 else 's'} alive"
    waiting = ", ".join(f"{count} in {name}" for name, count in queue.waiting.items() if count) or "none"
    console.print(f"[{colour}]{alive}[/]; jobs waiting: {waiting}")
    for job in queue.jobs:
        progress = f", {progress_words(job.progress)}" if job.state == "running" and job.progress else ""
        console.print(f"  {job.id}: {job.state}{progress}")
        if job.reason:
            console.print(f"    {job.reason}", markup=False)


def _ago(moment: datetime | None) -> str:
    if moment is None:
        return "never"
    seconds = (now() - moment).total_seconds()
    if seconds < 0:
        return "at a time that is yet to come: the clock was set back"
    return f"{seconds:.0f} s ago" if seconds < 120 else f"{seconds / 60:.0f} min ago"
