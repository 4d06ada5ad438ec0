"""Brings the rows of a training set to the device, batch by batch."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.device import Compute
from models.learner import Examples, Rows
from models.shelf_view import View

Places = NDArray[np.int64] | slice


@dataclass(frozen=True)
class Picked:
    """Some of the rows, in the order of their places; nothing is copied before it is asked for."""

    rows: Rows
    places: NDArray[np.int64]

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.places), *self.rows.shape[1:])

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, places: Places) -> NDArray[Any]:
        return self.rows[self.places[places]]


def picked(examples: Examples, places: NDArray[np.int64]) -> Examples:
    """The training set of these examples alone."""
    return replace(
        examples,
        rows=Picked(examples.rows, places),
        labels=examples.labels[places],
        weights=examples.weights[places],
    )


class Feed:
    """Rows that are asked for again and again: kept on the device where they are few, else read one batch ahead."""

    def __init__(self, rows: Rows, compute: Compute) -> None:
        self.rows, self.compute = rows, compute
        small = rows[:1].nbytes * len(rows) <= compute.keep
        self.kept = _tensor(rows[:]).to(compute.device) if small else None

    def batches(self, parts: Iterable[NDArray[np.int64]]) -> Generator[Tensor]:
        """The rows at each part's places, on the device; close it where it is not used up."""
        if self.kept is None:
            yield from read_ahead((self.rows[places] for places in parts), self.compute)
            return
        for places in parts:
            yield self.kept[torch.from_numpy(places).to(self.compute.device)]


def in_order(rows: Rows, batch: int) -> Iterator[NDArray[Any]]:
    """All rows once, in batches; at least one, if an empty one. Those on disk leave the memory again behind it."""
    if isinstance(rows, View) and len(rows):
        yield from rows.chunks(batch)
        return
    for start in range(0, max(len(rows), 1), batch):
        yield rows[start : start + batch]


def once(batches: Iterator[NDArray[Any]], compute: Compute) -> Generator[Tensor]:
    """These batches on the device. Where that is the memory they are read into, reading ahead would gain nothing."""
    if compute.pinned:
        yield from read_ahead(batches, compute)
        return
    for rows in batches:
        yield _tensor(rows).to(compute.device)


def read_ahead(batches: Iterator[NDArray[Any]], compute: Compute) -> Generator[Tensor]:
    """These batches on the device; the next is read by a thread while one is used.

    An error in reading comes up where those rows were due. The thread ends with the iterator, be it used up or closed.
    """

    def read() -> Tensor | None:
        rows = next(batches, None)
        if rows is None:
            return None
        return _tensor(rows).pin_memory() if compute.pinned else _tensor(rows)

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="read-ahead") as reader:
        coming = reader.submit(read)
        while (batch := coming.result()) is not None:
            coming = reader.submit(read)
            yield batch.to(compute.device, non_blocking=compute.pinned)


def _tensor(rows: NDArray[Any]) -> Tensor:
    # torch wants memory that may be written to, which read-only files in memory are not
    return torch.from_numpy(np.require(rows, requirements=["C", "W"]))
