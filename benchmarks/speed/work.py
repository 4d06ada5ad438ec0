"""Measures what is left, and keeps each fact as soon as it is there."""

from __future__ import annotations

import sys
from contextlib import closing

from benchmarks.journal import Journal
from benchmarks.speed import child, environment
from benchmarks.speed.made import Made, Record, code
from benchmarks.speed.options import Options
from benchmarks.speed.report import Report


def finish(asked: Options) -> Report:
    """Raises NoPeers before anything is measured, and Stopped."""
    inside = environment.python(asked.environment)
    made = Made(asked.settings, code(), environment.versions(asked.environment))
    if asked.fresh:
        asked.journal.unlink(missing_ok=True)
    kept = journal(asked, made)
    done = {record.fact.name for record in kept.runs()}
    if done:
        print(f"{len(done)} are measured already, in {asked.journal}; --fresh measures them anew", file=sys.stderr)
    with closing(child.measured([str(inside), *child.PROGRAM], asked.settings, done)) as found:
        for fact in found:
            kept.add(Record(made, fact))
    return Report(made, [record.fact for record in kept.runs()])


def journal(asked: Options, made: Made) -> Journal[Record]:
    """Facts of other sizes, of other code or of other versions of the peers do not count."""
    return Journal(asked.journal, Record.from_dict, lambda record: record.made == made)
