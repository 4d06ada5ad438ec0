"""Times selections of ours and of peers that answer the same question."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from benchmarks.speed.facts import Times
from benchmarks.speed.measure import clock


@dataclass(frozen=True)
class Ours:
    task: str
    call: Callable[[], object]
    repeats: int = 5


@dataclass(frozen=True)
class Peer:
    name: str
    seconds: Callable[[], float]
    picks: int
    wanted: Mapping[str, float] = field(default_factory=dict)  # by task: times faster
    compared: int = 0
    same: Mapping[str, Callable[[], bool]] = field(default_factory=dict)  # by task: whether picks are the same


def times(rows: int, ours: Sequence[Ours], peers: Sequence[Peer], done: Collection[str]) -> Iterator[Times]:
    """All of ours beside every peer, but for what is done. Times that stand side by side are of the same process."""
    blank = {(one.task, peer.name): _blank(rows, one, peer) for peer in peers for one in ours}
    left = {key: found for key, found in blank.items() if found.name not in done}
    taken = {}
    for one in ours:
        if any(task == one.task for task, _ in left):
            print(f"{rows:,} rows: timing {one.task}", file=sys.stderr)
            taken[one.task] = clock.seconds(one.call, one.repeats)
    for peer in peers:
        tasks = [one.task for one in ours if (one.task, peer.name) in left]
        if not tasks:
            continue
        print(f"{rows:,} rows: timing {peer.name}", file=sys.stderr)
        theirs = peer.seconds()
        for task in tasks:
            same = peer.same[task]() if task in peer.same else None
            yield replace(left[task, peer.name], ours=taken[task], theirs=theirs, same=same)


def _blank(rows: int, one: Ours, peer: Peer) -> Times:
    compared = peer.compared if one.task in peer.same else 0
    return Times(rows, one.task, peer.name, 0.0, 0.0, peer.picks, peer.wanted.get(one.task), compared)
