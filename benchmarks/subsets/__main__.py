"""`python -m benchmarks.subsets`: does the runs that are left, then writes tables, picture and page."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from benchmarks import results
from benchmarks.page import Part
from benchmarks.subsets import fashion, figure, workers
from benchmarks.subsets.options import Options, options
from benchmarks.subsets.run import Run
from benchmarks.subsets.summary import Summary
from benchmarks.subsets.tables import tables

PICTURE = "figures/subsets.svg"
PAGE = Part("benchmarks.subsets", "Training on a selected subset")


def main(words: Sequence[str] | None = None) -> int:
    asked = options(words)
    try:
        runs = results.load(asked.json, Run.from_dict) if asked.page_only else _runs(asked)
    except fashion.NoFashion as error:
        print(error, file=sys.stderr)
        return 2
    summary = Summary(runs)
    figure.draw(summary, asked.docs / PICTURE)
    written = tables(summary)
    picture = f"![Learning curves of all rules, and what each gains over random]({PICTURE})"
    PAGE.write(asked.docs / "benchmark-subsets.md", f"{written}\n\n{picture}")
    print(written)
    return 0


def _runs(asked: Options) -> list[Run]:
    data = fashion.read(asked.fashion)  # before any process is started
    journal = workers.journal(asked.journal, data.digest, asked.settings)
    runs = workers.finish(workers.jobs(asked.seeds), journal, asked.settings, asked.fashion, asked.workers)
    results.save(asked.json, runs)
    return runs


if __name__ == "__main__":
    sys.exit(main())
