"""Rows reach the device in the order asked for, read one batch ahead by a thread that always ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from models.device import Compute
from models.feed import Feed, Places, in_order, picked, read_ahead
from models.learner import Examples, Rows
from models.shelf import Shelf, key_of

CPU = Compute(torch.device("cpu"))
ROWS = np.arange(60, dtype=np.float32).reshape(20, 3)
PARTS = [np.array([3, 1, 2]), np.array([19, 0]), np.array([7])]
ONE_BY_ONE = [np.array([place]) for place in range(20)]


@dataclass
class Watched:
    """Rows that tell when they are read."""

    rows: NDArray[Any]
    reading: Callable[[Places], None]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.rows.shape

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, places: Places) -> NDArray[Any]:
        self.reading(places)
        return self.rows[places]


def each(rows: Rows, parts: Sequence[NDArray[np.int64]]) -> Iterator[NDArray[Any]]:
    return (rows[places] for places in parts)


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("read-ahead")]


@pytest.mark.parametrize("keep", [0, CPU.keep])
def test_batches_come_in_the_order_asked_for(keep: int) -> None:
    batches = list(Feed(ROWS, replace(CPU, keep=keep)).batches(PARTS))
    for batch, places in zip(batches, PARTS, strict=True):
        np.testing.assert_array_equal(batch.numpy(), ROWS[places])


def test_few_rows_are_kept_and_many_are_not() -> None:
    assert Feed(ROWS, replace(CPU, keep=ROWS.nbytes)).kept is not None
    assert Feed(ROWS, replace(CPU, keep=ROWS.nbytes - 1)).kept is None


def test_rows_that_are_kept_are_read_once() -> None:
    reads: list[Places] = []
    feed = Feed(Watched(ROWS, reads.append), CPU)
    before = len(reads)
    for _ in range(3):
        list(feed.batches(PARTS))
    assert len(reads) == before


def test_a_read_only_file_can_be_read(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", ROWS)
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    for keep in (0, CPU.keep):
        (batch,) = Feed(rows, replace(CPU, keep=keep)).batches([np.array([5, 4])])
        np.testing.assert_array_equal(batch.numpy(), ROWS[[5, 4]])


def test_the_next_batch_is_read_while_this_one_is_used() -> None:
    second_is_read = threading.Event()

    def reading(places: Places) -> None:
        if places is PARTS[1]:
            second_is_read.set()

    with closing(read_ahead(each(Watched(ROWS, reading), PARTS), CPU)) as batches:
        next(batches)
        assert second_is_read.wait(10)


def test_no_more_than_one_batch_is_read_ahead() -> None:
    read: list[Places] = []
    with closing(read_ahead(each(Watched(ROWS, read.append), ONE_BY_ONE), CPU)) as batches:
        for used, _ in enumerate(batches, start=1):
            assert len(read) <= used + 1


def test_an_error_in_reading_comes_up_where_the_rows_were_due() -> None:
    def reading(places: Places) -> None:
        if places is PARTS[1]:
            raise OSError("the disk is gone")

    batches = read_ahead(each(Watched(ROWS, reading), PARTS), CPU)
    np.testing.assert_array_equal(next(batches).numpy(), ROWS[PARTS[0]])
    with pytest.raises(OSError, match="the disk is gone"):
        next(batches)


def test_the_thread_ends_when_the_rest_is_not_wanted() -> None:
    with closing(read_ahead(each(ROWS, PARTS), CPU)) as batches:
        next(batches)
        assert any(thread.name.startswith("read-ahead") for thread in threading.enumerate())


def test_the_thread_ends_when_the_one_who_uses_the_rows_fails() -> None:
    def use() -> None:
        with closing(read_ahead(each(ROWS, PARTS), CPU)) as batches:
            next(batches)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        use()


def test_picked_examples_are_read_from_the_whole() -> None:
    examples = Examples(ROWS, np.arange(20) % 2, np.arange(1, 21, dtype=np.float32), 2)
    some = picked(examples, np.array([9, 4, 15]))
    assert (len(some), some.rows.shape) == (3, (3, 3))
    np.testing.assert_array_equal(some.rows[:], ROWS[[9, 4, 15]])
    np.testing.assert_array_equal(some.rows[np.array([2, 0])], ROWS[[15, 9]])
    np.testing.assert_array_equal(picked(some, np.array([1])).rows[:], ROWS[[4]])
    assert some.labels.tolist() == [1, 0, 1]
    assert some.weights.tolist() == [10, 5, 16]


@pytest.mark.parametrize(("count", "sizes"), [(20, [8, 8, 4]), (8, [8]), (0, [0])])
def test_all_rows_come_once_in_order_and_none_still_make_a_batch(count: int, sizes: list[int]) -> None:
    batches = list(in_order(ROWS[:count], 8))
    assert [len(batch) for batch in batches] == sizes
    np.testing.assert_array_equal(np.concatenate(batches), ROWS[:count])


def test_rows_on_a_shelf_come_in_order_too(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, (3,), np.float32, most_bytes=2**20)
    keys = [key_of(str(place)) for place in range(20)]
    shelf.put(keys, ROWS)
    np.testing.assert_array_equal(np.concatenate(list(in_order(shelf.view(keys), 8))), ROWS)
    assert [len(batch) for batch in in_order(shelf.view([]), 8)] == [0]
