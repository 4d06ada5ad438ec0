"""The jobs of this benchmark, and how each is done."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch

from benchmarks import results, side_by_side
from benchmarks.journal import Journal
from benchmarks.labels.data import DATASETS, NoData
from benchmarks.labels.model import described
from benchmarks.labels.options import Options
from benchmarks.labels.pools import POOLS, Pool
from benchmarks.labels.rules import RULES
from benchmarks.labels.run import Job, Run, measure
from benchmarks.subsets.fashion import Labelled

POOL_SEED = 20_230
"""Every seed chooses from the same pool."""


def here(asked: Options) -> Options:
    """Without the data that are not here, of which it is told why. Raises NoData for those asked for by name."""
    found = {}
    for name, path in asked.data.items():
        try:
            read(name, path)
        except NoData as error:
            if asked.named:
                raise
            side_by_side.say(f"left out: {error}")
        else:
            found[name] = path
    return replace(asked, data=found)


def jobs(asked: Options) -> list[Job]:
    """Seed by seed, so that whoever stops early has whole comparisons."""
    return [
        Job(data, pool, rule, seed)
        for data in asked.data
        for seed in range(asked.seeds[data])
        for pool in asked.pools
        for rule in asked.rules
    ]


def finish(wanted: Sequence[Job], asked: Options) -> list[Run]:
    """All that were made with these sizes, those wanted among them. Of these, what was published before is not run
    again, and is kept; results of other sizes would not fit into the same tables."""
    digests = {name: read(name, path).digest for name, path in asked.data.items()}

    def counts(run: Run) -> bool:
        name = run.job.data
        same = (digests.get(name, run.digest), asked.sizes[name], asked.learner(name))
        return same == (run.digest, run.settings, run.learner)

    journal = Journal(asked.journal, Run.from_dict, counts)
    known = {run.job for run in journal.runs()}
    for run in results.load(asked.json, Run.from_dict) if asked.json.exists() else []:
        if run.job not in known:
            journal.add(run)
    known = {run.job for run in journal.runs()}
    for data, kind in dict.fromkeys((job.data, job.pool) for job in wanted if job not in known):
        # once, with all threads, before workers with one thread each would all do it
        torch.set_num_threads(os.cpu_count() or 1)
        side_by_side.say(f"{data}, {kind}: making the pool")
        pool(data, asked.data[data], kind, asked.learner(data), asked.cache)
    pool.cache_clear()
    doing = partial(work, asked=asked)
    side_by_side.finish(wanted, journal, doing, workers=asked.workers, kind=_kind, told=_told)
    every = {run.job: run for run in journal.runs()}
    return [every[job] for job in sorted(every, key=_order)]


def work(job: Job, asked: Options) -> Run:
    path, learner = asked.data[job.data], asked.learner(job.data)
    return measure(
        job,
        pool(job.data, path, job.pool, learner, asked.cache),
        read(job.data, path).digest,
        learner,
        asked.sizes[job.data],
        weights_folder=asked.cache,
        device=asked.device,
    )


@cache  # once per process, however many runs it makes
def read(name: str, path: Path | None) -> Labelled:
    return DATASETS[name].read(path)


@cache
def pool(name: str, path: Path | None, kind: str, learner: str, kept: Path) -> Pool:
    made = POOLS[kind](read(name, path), np.random.default_rng(POOL_SEED))
    return described(made, learner, kept)


def _order(job: Job) -> tuple[int, int, int, int]:
    return list(DATASETS).index(job.data), job.seed, list(POOLS).index(job.pool), list(RULES).index(job.rule)


def _kind(job: Job) -> tuple[str, str]:
    return job.data, job.rule


def _told(run: Run) -> str:
    job = run.job
    return f"{job.data}, {job.pool}: {RULES[job.rule].title}, seed {job.seed}: {run.accuracy[-1]:.1%} right"
