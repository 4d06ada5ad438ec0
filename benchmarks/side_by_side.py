"""Does the jobs that are left, side by side in processes of one thread each, and tells how far they are."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from statistics import mean
from typing import Protocol, TypeVar

from benchmarks.journal import Journal, Recorded

J = TypeVar("J", bound=Hashable)
J_co = TypeVar("J_co", covariant=True)


class Finished(Recorded, Protocol[J_co]):
    @property
    def job(self) -> J_co: ...

    @property
    def seconds(self) -> float: ...


R = TypeVar("R", bound=Finished[Hashable])


def finish(
    wanted: Sequence[J],
    journal: Journal[R],
    work: Callable[[J], R],
    *,
    workers: int,
    kind: Callable[[J], Hashable],
    told: Callable[[R], str],
) -> list[R]:
    """All runs wanted: those in the journal, and the others once they have been made and written there. Runs of the
    same `kind` take about as long."""
    finished = {run.job: run for run in journal.runs() if run.job in set(wanted)}
    todo = [job for job in wanted if job not in finished]
    say(f"{len(finished)} of {len(wanted)} runs are done already; {len(todo)} to do")
    for run in _done(tuple(todo), work, workers):
        journal.add(run)
        finished[run.job] = run
        todo.remove(run.job)  # type: ignore[arg-type]
        left = in_words(_seconds_left(todo, list(finished.values()), kind, workers))
        say(f"{len(finished)}/{len(wanted)}: {told(run)}, after {in_words(run.seconds)}; about {left} left")
    return [finished[job] for job in wanted]


def _done(todo: Sequence[J], work: Callable[[J], R], workers: int) -> Iterator[R]:
    """Each run as soon as it has ended. A single worker is this process itself."""
    if workers == 1:
        one_thread()
        yield from (work(job) for job in todo)
        return
    # forking would copy torch's threads in whatever state they are
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=spawn, initializer=one_thread) as pool:
        try:
            for future in as_completed([pool.submit(work, job) for job in todo]):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def _seconds_left(todo: Sequence[J], finished: Sequence[R], kind: Callable[[J], Hashable], workers: int) -> float:
    """Each run takes as long as those of its kind took; one of a kind that has not ended yet, as the longest so far."""
    taken: dict[Hashable, list[float]] = {}
    for run in finished:
        taken.setdefault(kind(run.job), []).append(run.seconds)  # type: ignore[arg-type]
    longest = max((run.seconds for run in finished), default=0.0)
    return sum(mean(taken.get(kind(job), [longest])) for job in todo) / workers


def in_words(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
