"""`python -m benchmarks.speed`: measures what is left, then writes tables, picture and page."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

from benchmarks.page import Part
from benchmarks.speed import figure, work
from benchmarks.speed.child import Stopped
from benchmarks.speed.environment import NoPeers
from benchmarks.speed.options import Options, options
from benchmarks.speed.report import Report
from benchmarks.speed.tables import tables

PICTURE = "figures/speed.svg"
PAGE = Part("benchmarks.speed", "Benchmarks")


def main(words: Sequence[str] | None = None) -> int:
    asked = options(words)
    try:
        report = Report.load(asked.json) if asked.page_only else _measured(asked)
    except (NoPeers, Stopped) as error:
        print(error, file=sys.stderr)
        return 2
    figure.draw(report, asked.docs / PICTURE)
    written = tables(report, PICTURE)
    PAGE.write(asked.docs / "benchmarks.md", written)
    print(written)
    return 0


def _measured(asked: Options) -> Report:
    report = work.finish(asked)
    report.save(asked.json)
    return report


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # also then the measuring process is stopped
    sys.exit(main())
