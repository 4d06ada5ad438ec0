"""Does the jobs that are left, side by side in processes of one thread each."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from benchmarks.subsets import fashion
from benchmarks.subsets.forecast import in_words, seconds_left
from benchmarks.subsets.journal import Journal
from benchmarks.subsets.rules import RULES
from benchmarks.subsets.run import Job, Run, measure
from benchmarks.subsets.settings import Settings


def jobs(seeds: int) -> list[Job]:
    """Seed by seed, so that whoever stops early has whole comparisons."""
    return [Job(rule, seed) for seed in range(seeds) for rule in RULES]


def finish(wanted: Sequence[Job], journal: Journal, folder: Path, workers: int) -> list[Run]:
    """All runs wanted: those in the journal, and the others once they have been made and written there."""
    finished = {run.job: run for run in journal.runs() if run.job in wanted}
    todo = [job for job in wanted if job not in finished]
    _say(f"{len(finished)} of {len(wanted)} runs are done already; {len(todo)} to do")
    for run in _done(tuple(todo), journal.settings, folder, workers):
        journal.add(run)
        finished[run.job] = run
        todo.remove(run.job)
        left = in_words(seconds_left(todo, list(finished.values()), workers))
        last = run.points[-1]
        _say(
            f"{len(finished)}/{len(wanted)}: {RULES[run.rule].title}, seed {run.seed}: {last.accuracy:.2%} right "
            f"with {last.labels:,} labels, after {in_words(run.seconds)}; about {left} left"
        )
    return [finished[job] for job in wanted]


def _done(todo: Sequence[Job], settings: Settings, folder: Path, workers: int) -> Iterator[Run]:
    """Each run as soon as it has ended. A single worker is this process itself."""
    if workers == 1:
        one_thread()
        yield from (work(job, settings, folder) for job in todo)
        return
    # forking would copy torch's threads in whatever state they are
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=spawn, initializer=one_thread) as pool:
        try:
            for future in as_completed([pool.submit(work, job, settings, folder) for job in todo]):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def work(job: Job, settings: Settings, folder: Path) -> Run:
    return measure(job, fashion.read(folder), settings)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
