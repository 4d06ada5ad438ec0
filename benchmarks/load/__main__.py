"""`python -m benchmarks.load`: webhooks from 64 senders while a training runs, on the backend as it is served, on the
same web server with one insert in one process and in two, and on the official server. Ends with code 1 if a webhook was
lost."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from benchmarks.load import official, sweep, table
from benchmarks.load.bench import QUICK, Bench, Size, bench
from benchmarks.load.measure import QUIET_CORES, Measured
from benchmarks.load.summary import Summary

WITHIN_REACH = 0.8
"""Where the pace asked for is out of reach, this share of the rate flat out is tried too."""


def main(arguments: Sequence[str] | None = None) -> int:
    given = _options().parse_args(arguments)
    size = QUICK if given.quick else Size(seconds=given.seconds, tasks=given.tasks)
    with TemporaryDirectory(prefix="iwes-load-", dir=given.scratch) as folder:
        if given.sweep:
            sweep.show(Path(folder), size, given.wait, Console(width=160))
            return 0
        with bench(Path(folder) / "home", size, wait=given.wait, database=given.database) as (made, stack):
            _say("starting Redis, a worker that trains, and the servers")
            made.start(stack)
            measured = []
            for one in _measurements(made, size):
                measured.append(one)
                _say(f"{one.server}, {one.phase}: {one.outcome.rate:,.1f} webhooks/s")
            closing, closed_once = made.closing()
    summary = Summary([*measured, closing], closed_once, official.release())
    table.show(summary, Console(width=None if sys.stdout.isatty() else 200))
    if given.json:
        given.json.write_text(json.dumps(summary.as_dict(), indent=1) + "\n")
    return 0 if summary.nothing_lost else 1


def _measurements(made: Bench, size: Size) -> Iterator[Measured]:
    """The backend and the yardsticks in turns, so that whatever else this machine does meets all."""
    for server in (made.ours, *made.yardsticks):  # what is only done for the first webhooks
        made.flat_out(server, keep_alive=False, seconds=min(2.0, size.seconds))
    for keep_alive in (False, True):
        rates = []
        for _ in range(size.repeats):
            mine = made.flat_out(made.ours, keep_alive=keep_alive)
            rates.append(mine.outcome.rate)
            yield mine
            for server in made.yardsticks:
                yield made.flat_out(server, keep_alive=keep_alive)
        slower = [WITHIN_REACH * min(rates)] if min(rates) < size.rate else []
        for rate in (size.rate, *slower):
            yield from _undisturbed(made, size.tries, keep_alive=keep_alive, rate=rate)
            for server in made.yardsticks:
                yield made.paced(server, keep_alive=keep_alive, rate=rate)
    yield made.flat_out_official()


def _undisturbed(made: Bench, tries: int, *, keep_alive: bool, rate: float) -> Iterator[Measured]:
    """The backend at a pace; again where others took much of the machine meanwhile, for then it says more of them. All
    are shown; the one that was disturbed least is judged, whatever came of it."""
    for _ in range(tries):
        measured = made.paced(made.ours, keep_alive=keep_alive, rate=rate)
        yield measured
        if measured.other_cores <= QUIET_CORES:
            return


def _options() -> argparse.ArgumentParser:
    asked = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    asked.add_argument("--quick", action="store_true", help="a glance at whether it works; the figures mean little")
    asked.add_argument("--seconds", type=float, default=Size.seconds, help=f"of each measurement ({Size.seconds:.0f})")
    asked.add_argument("--tasks", type=int, default=Size.tasks, help=f"of a project, all drawn ({Size.tasks:,})")
    asked.add_argument("--json", type=Path, help="where to write the figures")
    asked.add_argument("--scratch", help="a folder for what it needs meanwhile: on the disk that is to be measured")
    asked.add_argument("--database", default="", help="an empty one instead of SQLite: postgresql+psycopg://…")
    asked.add_argument("--wait", type=float, default=0.0, help="seconds at most to wait for a quiet machine, each time")
    asked.add_argument("--sweep", action="store_true", help="instead: the backend with other numbers of processes")
    return asked


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # also then all that was started is stopped
    sys.exit(main())
