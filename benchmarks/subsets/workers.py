"""The jobs of this benchmark, and how each is done."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks import side_by_side
from benchmarks.journal import Journal
from benchmarks.subsets import fashion
from benchmarks.subsets.rules import RULES
from benchmarks.subsets.run import Job, Run, measure
from benchmarks.subsets.settings import Settings


def jobs(seeds: int) -> list[Job]:
    """Seed by seed, so that whoever stops early has whole comparisons."""
    return [Job(rule, seed) for seed in range(seeds) for rule in RULES]


def journal(path: Path, data: str, settings: Settings) -> Journal[Run]:
    return Journal(path, Run.from_dict, lambda run: (run.data, run.settings) == (data, settings))


def finish(wanted: Sequence[Job], kept: Journal[Run], settings: Settings, folder: Path, workers: int) -> list[Run]:
    doing = partial(work, settings=settings, folder=folder)
    return side_by_side.finish(wanted, kept, doing, workers=workers, kind=lambda job: job.rule, told=_told)


def work(job: Job, settings: Settings, folder: Path) -> Run:
    return measure(job, fashion.read(folder), settings)


def _told(run: Run) -> str:
    last = run.points[-1]
    return f"{RULES[run.rule].title}, seed {run.seed}: {last.accuracy:.2%} right with {last.labels:,} labels"
