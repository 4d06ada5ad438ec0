"""`python -m benchmarks.loop`: measures, then writes tables, picture and page."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.loop import figure
from benchmarks.loop.options import Options, options
from benchmarks.loop.report import Report
from benchmarks.loop.run import run
from benchmarks.loop.studio import NoStudio
from benchmarks.loop.tables import tables
from benchmarks.page import Part

PICTURE = "figures/loop.svg"
PAGE = Part("benchmarks.loop", "Benchmarks")


def main(words: Sequence[str] | None = None) -> int:
    asked = options(words)
    try:
        report = Report.load(asked.json) if asked.page_only else _measured(asked)
    except NoStudio as error:
        print(error, file=sys.stderr)
        return 2
    figure.draw(report, asked.docs / PICTURE)
    written = tables(report, PICTURE)
    PAGE.write(asked.docs / "benchmarks.md", written)
    print(written)
    return 0


def _measured(asked: Options) -> Report:
    with TemporaryDirectory(prefix="iwes-loop-", dir=asked.scratch) as folder:
        run(Path(folder), asked.settings).save(asked.json)
    return Report.load(asked.json)  # rounded, so that the same page can be made again from it


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # also then all that was started is stopped
    sys.exit(main())
