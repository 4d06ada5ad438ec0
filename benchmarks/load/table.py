"""The figures as tables."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from benchmarks.load.measure import Measured
from benchmarks.load.summary import Summary, connections

COLUMNS = ("server", "load", "connections", "webhooks/s", "p50", "p95", "p99", "max", "> 1 s", "lost")
COSTS = ("CPU per webhook", "cores: server", "training", "senders", "others")


def show(summary: Summary, console: Console) -> None:
    console.print(_measured(summary.measured))
    console.print(
        "Latencies in ms; at a given pace from the moment a webhook was due. CPU per webhook in ms: the server's, and "
        "in brackets the senders'. “Others” is whatever else ran on this machine, or on its host instead of it."
    )
    console.print(_summary(summary))


def _measured(measured: list[Measured]) -> Table:
    table = Table(title="Each measurement, in the order made, while a training ran")
    for column in (*COLUMNS, *COSTS):
        table.add_column(column, justify="left" if column in COLUMNS[:3] else "right")
    for m in measured:
        load = f"{m.phase} {m.asked_rate:,.0f}/s" if m.asked_rate else m.phase
        latencies = (f"{1e3 * m.outcome.latency(share):,.0f}" for share in (0.5, 0.95, 0.99, 1.0))
        figures = [f"{m.outcome.rate:,.2f}" if m.outcome.rate < 10 else f"{m.outcome.rate:,.0f}", *latencies]
        lost = "" if m.kept is None else str(m.lost)
        costs = f"{m.server_milliseconds:,.2f} ({m.sender_milliseconds:.2f})"
        cores = (f"{value:.2f}" for value in (m.server_cores, m.training_cores, m.sender_cores, m.other_cores))
        table.add_row(m.server, load, connections(m.keep_alive), *figures, str(m.outcome.late), lost, costs, *cores)
    return table


def _summary(summary: Summary) -> Table:
    table = Table(title="Side by side")
    for column in ("figure", "backend", "next to it", "ratio", "goal", ""):
        table.add_column(column, justify="right" if column == "ratio" else "left", overflow="fold")
    for line in summary.lines():
        ratio = "" if line.ratio is None else f"{line.ratio:,.2f}"
        verdict = {True: "met", False: "NOT met", None: ""}[line.met]
        table.add_row(line.what, line.ours, line.other, ratio, line.goal, verdict)
    return table
