"""Brings the rows of a training set to the device, batch by batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.device import Compute
from models.learner import Examples, Rows

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
            yield from read_ahead(self.rows, parts, self.compute)
            return
        for places in parts:
            yield self.kept[torch.from_numpy(places).to(self.compute.device)]


def read_ahead(rows: Rows, parts: Iterable[Places], compute: Compute) -> Generator[Tensor]:
    """The rows at each part's places, on the device; the next are read by a thread while these are used.

    An error in reading comes up where those rows were due. The thread ends with the iterator, be it used up or closed.
    """

    def read(places: Places) -> Tensor:
        batch = _tensor(rows[places])
        return batch.pin_memory() if compute.pinned else batch

    coming: deque[Future[Tensor]] = deque()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="read-ahead") as reader:
        for places in parts:
            coming.append(reader.submit(read, places))
            if len(coming) > 1:
                yield coming.popleft().result().to(compute.device, non_blocking=compute.pinned)
        while coming:
            yield coming.popleft().result().to(compute.device, non_blocking=compute.pinned)


def _tensor(rows: NDArray[Any]) -> Tensor:
    # torch wants memory that may be written to, which read-only files in memory are not
    return torch.from_numpy(np.require(rows, requirements=["C", "W"]))
