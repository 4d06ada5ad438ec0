"""Rows of one shape kept on disk by key: written once, read as mapped files by any number of processes, bounded.

Rows lie in segments of at most 128 MB: `00000007.rows` holds them one after the other, `00000007.keys` their keys. Rows
are on disk before their keys are written, so a writer killed at any moment leaves at most rows without keys, or a part
of a key: readers do not see them, and the next writer overwrites them. When the shelf is full its oldest segment goes.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from models.shelf_view import Mapped, View

LABEL = "shelf.json"
KEY_BYTES = 16
SEGMENT_BYTES = 128 * 2**20
"""Holds 65,536 rows of 512 floats: a chunk that large, which keeps every core busy, needs no copy."""
SEGMENTS_AT_LEAST = 8
"""A small shelf has smaller segments, so that making room never costs more than an eighth of it."""

KEPT_BYTES = 384 * 2**20
"""What may stay in memory of the segments read so far."""
READ_AT_LEAST = 2 * 2**20
"""So much comes along with a row that is read for itself, where the file lies in huge pages."""

Key = bytes
"""16 of them; see `key_of`."""


def key_of(data: bytes | str) -> Key:
    """16 bytes that stand for the data: equal data have equal keys, different data different ones."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).digest()[:KEY_BYTES]


def shape_in(folder: Path) -> tuple[int, ...] | None:
    """The shape of the rows that a folder was made for; None where there is no shelf yet."""
    try:
        return tuple(json.loads((folder / LABEL).read_text())["shape"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


class Shelf:
    """Safe to share between threads, and its folder between processes. Readers never wait for a writer."""

    def __init__(self, folder: Path, shape: tuple[int, ...], dtype: DTypeLike, *, most_bytes: int) -> None:
        """Opens the folder or makes it. One that was made for another shape or dtype is emptied and begun anew."""
        self._folder = folder
        self.shape = tuple(shape)  # of a row
        self._dtype = np.dtype(dtype)
        self._row_bytes = math.prod(self.shape) * self._dtype.itemsize
        if self._row_bytes < 1 or most_bytes < self._row_bytes:
            raise ValueError(f"a shelf needs room for at least a row of {self._row_bytes} bytes, not {most_bytes}")
        self._most_bytes = most_bytes
        self._label = folder / LABEL
        self._guard = threading.RLock()  # over everything below
        self._seen: tuple[int, int] | None = None
        self._per_segment = 1
        self._places: dict[Key, int] = {}
        self._keys: dict[int, list[Key]] = {}  # by segment
        self._mapped: dict[int, Mapped] = {}
        self._read_bytes = 0  # at most, through views made since memory was last let go
        with self._writing():
            self._begin_unless_begun()

    def __len__(self) -> int:
        with self._guard:
            self._refresh()
            return len(self._places)

    @property
    def bytes(self) -> int:
        """What rows and keys take on disk."""
        return len(self) * (self._row_bytes + KEY_BYTES)

    def put(self, keys: Sequence[Key], rows: NDArray[Any]) -> None:
        """Adds the rows whose keys are not known yet. Of more rows than the shelf has room for, the last ones stay."""
        if rows.dtype != self._dtype or rows.shape != (len(keys), *self.shape):
            raise ValueError(
                f"{len(keys)} keys need rows of shape {(len(keys), *self.shape)} and type {self._dtype}, "
                f"not {rows.shape} and {rows.dtype}"
            )
        if any(len(key) != KEY_BYTES for key in keys):
            raise ValueError(f"every key must have {KEY_BYTES} bytes")
        with self._writing():
            self._begin_unless_begun()
            known = self.find(keys).tolist()
            fresh = {key: place for place, (key, at) in enumerate(zip(keys, known, strict=True)) if at < 0}
            chosen, places = list(fresh), np.fromiter(fresh.values(), np.int64, len(fresh))
            while chosen:
                held = self._held()
                segment = self._segment_to_write(held)
                room = self._per_segment - held.get(segment, 0)
                self._evict_for(min(room, len(chosen)), segment, held)
                self._append(segment, held.get(segment, 0), chosen[:room], rows[places[:room]])
                chosen, places = chosen[room:], places[room:]

    def find(self, keys: Sequence[Key]) -> NDArray[np.int64]:
        """The place of each key, −1 for one that is not here (any more)."""
        with self._guard:
            self._refresh()
            return np.fromiter(map(self._places.get, keys, repeat(-1)), np.int64, len(keys))

    def view(self, keys: Sequence[Key]) -> View:
        """The rows of these keys, in this order. They stay readable when they are evicted afterwards."""
        found, view = self.look_up(keys)
        if len(found) < len(keys):
            missing = len(keys) - len(found)
            raise KeyError(f"{missing} of {len(keys)} rows are not on the shelf {self._folder.name}")
        return view

    def look_up(self, keys: Sequence[Key]) -> tuple[NDArray[np.int64], View]:
        """Which of these keys are here (by their places among those asked for), and the rows of those. Whoever goes
        through a shelf batch by batch does not pile it up in memory; see `_let_go`."""
        with self._guard:
            self._let_go(len(keys))
            while True:
                places = self.find(keys)
                found = np.flatnonzero(places >= 0)
                try:
                    mapped = {n: self._map(n) for n in np.unique(places[found] // self._per_segment).tolist()}
                except FileNotFoundError:
                    continue  # evicted by another process in this very moment: now they are missing
                if self._stamp() == self._seen:
                    return found, View(places[found], mapped, self._per_segment, self.shape, self._dtype)

    def _let_go(self, coming: int) -> None:
        """Takes what was read through earlier views out of memory, once that and the rows to come may be too much. Not
        sooner: mapping it again page by page would take longer than a small network takes to look at it."""
        self._read_bytes += coming * max(self._row_bytes, READ_AT_LEAST)
        mapped = sum(len(mapped.rows) for mapped in self._mapped.values()) * self._row_bytes
        if min(self._read_bytes, mapped) > KEPT_BYTES:
            for one in self._mapped.values():
                one.drop(0, len(one.rows))
            self._read_bytes = 0

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One writer at a time, of all threads and processes; it may be killed, the system then opens the lock."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "lock").open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _begin_unless_begun(self) -> None:
        """The label is the first to go and the last to come: a folder half emptied has none, and counts as empty."""
        if self._read_label() is not None:
            return
        self._label.unlink(missing_ok=True)
        for number in self._numbers(".rows", ".keys"):
            self._remove(number)
        share = self._most_bytes // SEGMENTS_AT_LEAST // (self._row_bytes + KEY_BYTES)
        fitting = min(SEGMENT_BYTES // self._row_bytes, share)
        label = {"shape": self.shape, "dtype": self._dtype.str, "rows_per_segment": max(1, fitting)}
        half = self._label.with_suffix(".half")
        half.write_text(json.dumps(label))
        half.replace(self._label)

    def _read_label(self) -> int | None:
        """Rows per segment; None where the folder does not hold rows of our shape and dtype."""
        try:
            label = json.loads(self._label.read_text())
            ours = tuple(label["shape"]) == self.shape and label["dtype"] == self._dtype.str
            return max(1, int(label["rows_per_segment"])) if ours else None
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def _stamp(self) -> tuple[int, int] | None:
        """Tells one beginning of the shelf from the next, whoever emptied it."""
        try:
            status = self._label.stat()
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns

    def _refresh(self) -> None:
        """Reads the keys that others have added and forgets those whose segment is gone."""
        with self._guard:
            while True:
                stamp = self._stamp()
                if stamp != self._seen:
                    self._places, self._keys, self._mapped = {}, {}, {}
                    self._seen = stamp
                per_segment = self._read_label() if not self._keys else self._per_segment
                numbers = self._numbers(".keys") if per_segment is not None else []
                self._per_segment = per_segment or 1
                for number in self._keys.keys() - set(numbers):
                    self._forget(number)
                for number in numbers:
                    self._read_tail(number)
                if self._stamp() == stamp:
                    return

    def _numbers(self, *suffixes: str) -> list[int]:
        names = [entry.name for entry in os.scandir(self._folder)]
        return sorted({int(name[:8]) for name in names if name[:8].isdigit() and name[8:] in suffixes})

    def _path(self, number: int, suffix: str) -> Path:
        return self._folder / f"{number:08d}{suffix}"

    def _read_tail(self, number: int) -> None:
        known = self._keys.setdefault(number, [])
        if len(known) >= self._per_segment:
            return
        try:
            with self._path(number, ".keys").open("rb") as file:
                file.seek(len(known) * KEY_BYTES)
                tail = file.read()
            whole_rows = self._path(number, ".rows").stat().st_size // self._row_bytes
        except FileNotFoundError:
            return  # evicted just now; the next refresh forgets it
        count = min(len(tail) // KEY_BYTES, whole_rows - len(known))
        new = [tail[i * KEY_BYTES : (i + 1) * KEY_BYTES] for i in range(count)]
        first = number * self._per_segment + len(known)
        self._places.update(zip(new, range(first, first + len(new)), strict=True))
        known.extend(new)

    def _forget(self, number: int) -> None:
        for key in self._keys.pop(number):
            if self._places.get(key, -1) // self._per_segment == number:  # it may have been put again since
                del self._places[key]
        self._mapped.pop(number, None)

    def _held(self) -> dict[int, int]:
        """How many rows each segment holds."""
        with self._guard:
            self._refresh()
            return {number: len(keys) for number, keys in self._keys.items()}

    def _segment_to_write(self, held: Mapping[int, int]) -> int:
        last = max(held, default=0)
        return last if held.get(last, 0) < self._per_segment else last + 1

    def _evict_for(self, rows: int, writing: int, held: Mapping[int, int]) -> None:
        """Makes room for so many rows; the segment being written stays even where it alone is too much."""
        allowed = self._most_bytes // (self._row_bytes + KEY_BYTES)
        total, first = sum(held.values()) + rows, min(held, default=writing)
        while total > allowed and first < writing:
            total -= held.get(first, 0)
            first += 1
        for number in self._numbers(".rows", ".keys"):
            if number < first:  # also rows that a writer killed while evicting left without keys
                self._remove(number)

    def _remove(self, number: int) -> None:
        for suffix in (".keys", ".rows"):  # in this order, so that no key is left without its row
            self._path(number, suffix).unlink(missing_ok=True)

    def _append(self, number: int, held: int, keys: Sequence[Key], rows: NDArray[Any]) -> None:
        content = np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data
        _write_at(self._path(number, ".rows"), held * self._row_bytes, content)
        _write_at(self._path(number, ".keys"), held * KEY_BYTES, memoryview(b"".join(keys)))

    def _map(self, number: int) -> Mapped:
        """The segment's rows as far as their keys are known; a segment that has grown is mapped again."""
        count = len(self._keys[number])
        mapped = self._mapped.get(number)
        if mapped is None or len(mapped.rows) < count:
            mapped = Mapped(self._path(number, ".rows"), (count, *self.shape), self._dtype)
            self._mapped[number] = mapped
        return mapped


def _write_at(path: Path, offset: int, content: memoryview) -> None:
    """Puts the content behind the first `offset` bytes, in place of whatever a killed writer left there."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    begin = offset
    try:
        os.ftruncate(descriptor, begin)
        while content:
            written = os.pwrite(descriptor, content, offset)
            content, offset = content[written:], offset + written
        os.fdatasync(descriptor)
    except OSError as error:  # most likely a full disk, which what was written so far would only keep full
        os.ftruncate(descriptor, begin)
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        os.close(descriptor)
