"""Rows that lie in mapped files, read like an array; going through them in order keeps little of them in memory."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

LONG_RUN = 1024
"""Rows in a row on disk that are worth a chunk of their own, since they need not be copied."""

LARGE = 64 * 2**20
"""Bytes in a view beyond which rows from all over leave the memory as soon as they are copied; of smaller views the
shelf itself sees to it that they do not pile up."""

FEW = 16
"""Rows per segment below which finding out which are where takes longer than fetching them."""

_POPULATE_READ = 22  # MADV_POPULATE_READ, which Python's mmap has no name for


class Mapped:
    """One file of rows in memory. It stays readable when the file is deleted; writing to it never reaches the file."""

    def __init__(self, path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            self.file = status.st_dev, status.st_ino
            """Tells files apart, also when one has taken the name of another."""
            self._memory = mmap.mmap(
                descriptor,
                int(np.prod(shape)) * dtype.itemsize,
                flags=mmap.MAP_PRIVATE,  # copy on write, for torch does not like arrays that cannot be written
                prot=mmap.PROT_READ | mmap.PROT_WRITE,
            )
        finally:
            os.close(descriptor)
        self.rows: NDArray[Any] = np.frombuffer(self._memory, dtype).reshape(shape)

    def fetch(self, first: int, end: int) -> None:
        """Brings these rows into memory at once, which is quicker than page by page as they are read.

        What has to come from disk comes in huge pages, which are mapped much faster in every later pass. They are only
        asked for meanwhile: who reads single rows from all over would read megabytes for each.
        """
        for advice in (mmap.MADV_HUGEPAGE, _POPULATE_READ, mmap.MADV_NOHUGEPAGE):
            with suppress(OSError):  # not every Linux can; then pages come as they are read
                self._memory.madvise(advice, *self._pages(first, end))

    def drop(self, first: int, end: int) -> None:
        """Takes these rows out of memory; whoever reads them again gets them from the file."""
        self._memory.madvise(mmap.MADV_DONTNEED, *self._pages(first, end))

    def _pages(self, first: int, end: int) -> tuple[int, int]:
        """Where the rows begin, from the start of a page on, and how many bytes they take."""
        row_bytes = self.rows[0].nbytes
        begin = first * row_bytes // mmap.PAGESIZE * mmap.PAGESIZE
        return begin, end * row_bytes - begin


class View:
    """Chosen rows of a shelf in a chosen order; follows `models.learner.Rows`.

    Rows that lie next to each other on disk come without a copy: treat what you get as read-only.
    """

    def __init__(
        self,
        places: NDArray[np.int64],
        segments: Mapping[int, Mapped],
        per_segment: int,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
    ) -> None:
        self._places = places
        self._segments = segments
        self._per_segment = per_segment
        self._row_shape = shape
        self.dtype = dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self._places), *self._row_shape)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, places: NDArray[np.int64] | slice | int) -> NDArray[Any]:
        if isinstance(places, int | np.integer):
            row: NDArray[Any] = self[np.array([places])][0]
            return row
        wanted = self._places[places]
        return self._slice(wanted) if self._adjacent(wanted) else self._gather(wanted, drop=False)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """All of it in memory."""
        return np.array(self[:], dtype=dtype, copy=copy)

    def take(self, places: NDArray[np.int64]) -> View:
        """These of the rows, still on disk."""
        return View(self._places[places], self._segments, self._per_segment, self._row_shape, self.dtype)

    def chunks(self, rows_at_most: int) -> Iterator[NDArray[Any]]:
        """All rows in order, some at a time. What has been gone through leaves the memory again, so that it never
        holds more than about a segment and a chunk. A chunk ends early where that saves copying it."""
        if rows_at_most < 1:
            raise ValueError(f"a chunk needs at least 1 row, not {rows_at_most}")
        drop = self.dtype.itemsize * int(np.prod(self.shape)) > LARGE
        for begin, end in self._spans(min(rows_at_most, LONG_RUN)):
            for start in range(begin, end, rows_at_most):
                wanted = self._places[start : min(start + rows_at_most, end)]
                if not self._adjacent(wanted):
                    yield self._gather(wanted, drop=drop)
                    continue
                number, first = divmod(int(wanted[0]), self._per_segment)
                self._segments[number].fetch(first, first + len(wanted))
                yield self._slice(wanted)
                self._segments[number].drop(first, first + len(wanted))

    def _spans(self, long_run: int) -> Iterator[tuple[int, int]]:
        """Where to cut: around each long run of rows that lie next to each other, leaving the rest together."""
        ordered = np.diff(self._places) == 1
        same_segment = np.diff(self._places // self._per_segment) == 0
        edges = np.concatenate([[0], np.flatnonzero(~(ordered & same_segment)) + 1, [len(self)]])
        long = np.diff(edges) >= long_run
        cut = np.concatenate([[True], long[1:] | long[:-1], [True]])
        edges = edges[cut]
        return zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)

    def _adjacent(self, places: NDArray[np.int64]) -> bool:
        """Whether these rows lie one after the other in one segment."""
        if not len(places) or places[-1] - places[0] != len(places) - 1:
            return False
        one_segment = places[0] // self._per_segment == places[-1] // self._per_segment
        return bool(one_segment and (np.diff(places) == 1).all())

    def _slice(self, places: NDArray[np.int64]) -> NDArray[Any]:
        number, first = divmod(int(places[0]), self._per_segment)
        return self._segments[number].rows[first : first + len(places)]

    def _gather(self, places: NDArray[np.int64], *, drop: bool) -> NDArray[Any]:
        """A copy of these rows. To `drop` is to take each segment out of memory before the next is read."""
        out = np.empty((len(places), *self._row_shape), self.dtype)
        numbers, rows = np.divmod(places, self._per_segment)
        touched = np.unique(numbers).tolist()
        if len(places) < FEW * len(touched) and not drop:  # a batch from all over: quicker row by row
            for place, (number, row) in enumerate(zip(numbers.tolist(), rows.tolist(), strict=True)):
                out[place] = self._segments[number].rows[row]
            return out
        for number in touched:
            here = np.flatnonzero(numbers == number)
            segment = self._segments[number]
            out[here] = segment.rows[rows[here]]
            if drop:
                segment.drop(0, len(segment.rows))
        return out


def joined(views: Iterable[View]) -> View:
    """All rows of at least one view, one view after the other, still on disk.

    The views may come one by one from a shelf that evicts what it held when an earlier one was made. So more rows can
    be brought together than the shelf has room for: what is evicted leaves the disk when the joined view is gone.
    """
    numbers: dict[tuple[int, int], int] = {}
    segments: dict[int, Mapped] = {}
    parts: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    for view in views:
        renumbered = np.zeros(max(view._segments, default=0) + 1, np.int64)
        for number, mapped in view._segments.items():
            ours = renumbered[number] = numbers.setdefault(mapped.file, len(numbers))
            if ours not in segments or len(segments[ours].rows) < len(mapped.rows):
                segments[ours] = mapped  # the file has grown since
        number_of, row_of = np.divmod(view._places, view._per_segment)
        parts.append((renumbered[number_of], row_of))
    per_segment = max((len(mapped.rows) for mapped in segments.values()), default=1)
    places = np.concatenate([number_of * per_segment + row_of for number_of, row_of in parts])
    return View(places, segments, per_segment, view._row_shape, view.dtype)
