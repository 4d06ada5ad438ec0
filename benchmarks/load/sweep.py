"""The backend with other numbers of gunicorn workers and threads: what its own numbers are chosen by."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from backend import serve
from backend.embedded.process import Stack
from benchmarks.load import ours
from benchmarks.load.bench import Size, bench
from benchmarks.load.measure import Measured

SETTINGS = [(1, 8), (1, 16), (1, 32), (1, 64), (2, 8), (2, 16), (2, 32), (3, 8), (4, 8)]
TURNS = 2
PACE = 0.8
"""Of its rate flat out: where latencies are compared."""


def show(folder: Path, size: Size, wait: float, console: Console) -> None:
    """Each in turns, then all again, while one training runs."""
    found: dict[tuple[int, int], list[tuple[Measured, Measured]]] = {pair: [] for pair in SETTINGS}
    size = replace(size, repeats=TURNS * len(SETTINGS), closing=1)
    with bench(folder / "home", size, wait=wait) as (made, stack):
        made.start(stack, alone=True)
        for _ in range(TURNS):
            for pair in SETTINGS:
                with Stack() as short:
                    made.ours = ours.start(short, made.place, pair)
                    made.ours.await_rest()
                    flat_out = made.flat_out(made.ours, keep_alive=False)
                    paced = made.paced(made.ours, keep_alive=False, rate=PACE * flat_out.outcome.rate)
                found[pair].append((flat_out, paced))
                print(f"{pair}: {flat_out.outcome.rate:,.0f} webhooks/s", file=sys.stderr, flush=True)
    table = Table(title=f"The backend uses 1 × {serve.THREADS}; a connection for each webhook")
    for column in (
        "workers × threads",
        "webhooks/s",
        f"p50 at {PACE:.0%}",
        "p99",
        "CPU ms",
        "training's cores",
        "others'",
    ):
        table.add_column(column, justify="right")
    for (workers, threads), runs in found.items():
        table.add_row(
            f"{workers} × {threads}",
            " ".join(f"{flat_out.outcome.rate:,.0f}" for flat_out, _ in runs),
            " ".join(f"{1e3 * paced.outcome.latency(0.5):,.0f}" for _, paced in runs),
            " ".join(f"{1e3 * paced.outcome.latency(0.99):,.0f}" for _, paced in runs),
            " ".join(f"{flat_out.server_milliseconds:.2f}" for flat_out, _ in runs),
            " ".join(f"{flat_out.training_cores:.2f}" for flat_out, _ in runs),
            " ".join(f"{flat_out.other_cores:.2f}" for flat_out, _ in runs),
        )
    console.print(table)
