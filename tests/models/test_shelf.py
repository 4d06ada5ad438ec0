"""Rows put on a shelf are found whole by whoever looks, whatever happens to their writer, until they are evicted."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from models.shelf import KEPT_BYTES, Shelf, key_of, shape_in
from models.shelf_view import View, joined

ROOT = Path(__file__).parents[2]
ROOMY = 2**30


def keys(*numbers: int) -> list[bytes]:
    return [key_of(str(number)) for number in numbers]


def rows(*numbers: int, width: int = 8) -> NDArray[np.float32]:
    """Rows that tell which they are, in every place."""
    return np.repeat(np.array(numbers, np.float32)[:, None], width, axis=1)


def shelf(folder: Path, *, width: int = 8, most_bytes: int = ROOMY) -> Shelf:
    return Shelf(folder, (width,), np.float32, most_bytes=most_bytes)


def small(folder: Path) -> Shelf:
    """Room for 8 segments of 5 rows, 48 bytes each with the key."""
    return shelf(folder, most_bytes=8 * 5 * 48)


def put(on: Shelf, *numbers: int) -> None:
    on.put(keys(*numbers), rows(*numbers))


def test_rows_come_back_in_the_order_asked_for(tmp_path: Path) -> None:
    ours = small(tmp_path)
    put(ours, *range(23))
    wanted = [22, 0, 7, 7, 11]
    view = ours.view(keys(*wanted))
    assert view.shape == (5, 8)
    assert len(view) == 5
    np.testing.assert_array_equal(view[:], rows(*wanted))
    np.testing.assert_array_equal(view[np.array([4, 1])], rows(11, 0))
    np.testing.assert_array_equal(view[1:3], rows(0, 7))
    np.testing.assert_array_equal(view[-1], rows(11)[0])
    np.testing.assert_array_equal(np.asarray(view), rows(*wanted))


def test_images_are_kept_as_well_as_features(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 255, (9, 3, 28, 28), np.uint8)
    Shelf(tmp_path, (3, 28, 28), np.uint8, most_bytes=ROOMY).put(keys(*range(9)), images)
    view = Shelf(tmp_path, (3, 28, 28), np.uint8, most_bytes=ROOMY).view(keys(*range(9)))
    assert view.shape == (9, 3, 28, 28)
    assert view.dtype == np.uint8
    np.testing.assert_array_equal(view[:], images)


def test_neighbours_on_disk_are_not_copied_and_others_are(tmp_path: Path) -> None:
    ours = small(tmp_path)
    put(ours, *range(10))
    view = ours.view(keys(*range(10)))
    assert np.shares_memory(view[1:4], view[0:5])
    assert not np.shares_memory(view[3:7], view[3:7]), "rows of two segments need a copy"
    assert not np.shares_memory(view[np.array([2, 1])], view[0:5])


def test_writing_to_what_a_view_gives_never_reaches_the_disk(tmp_path: Path) -> None:
    put(shelf(tmp_path), 1, 2)
    shelf(tmp_path).view(keys(1, 2))[:][:] = 99
    np.testing.assert_array_equal(shelf(tmp_path).view(keys(1, 2))[:], rows(1, 2))


def test_a_known_key_is_skipped(tmp_path: Path) -> None:
    ours = shelf(tmp_path)
    put(ours, 1)
    ours.put(keys(1, 2, 2), rows(9, 2, 2))
    assert len(ours) == 2
    np.testing.assert_array_equal(ours.view(keys(1, 2))[:], rows(1, 2))


def test_missing_rows_are_counted(tmp_path: Path) -> None:
    ours = shelf(tmp_path)
    put(ours, 1)
    assert ours.find(keys(1, 2, 3)).tolist() == [0, -1, -1]
    with pytest.raises(KeyError, match="2 of 3 rows are not on the shelf"):
        ours.view(keys(1, 2, 3))


def test_an_empty_view_is_an_empty_array(tmp_path: Path) -> None:
    view = shelf(tmp_path).view([])
    assert view[:].shape == (0, 8)
    assert list(view.chunks(10)) == []


@pytest.mark.parametrize(
    ("given_keys", "given_rows", "complaint"),
    [
        (keys(1), rows(1, 2), "1 keys need rows of shape"),
        (keys(1), rows(1, width=9), "1 keys need rows of shape"),
        (keys(1), rows(1).astype(np.float64), "not .* float64"),
        ([b"short"], rows(1), "every key must have 16 bytes"),
    ],
)
def test_rows_that_do_not_fit_are_refused(
    given_keys: list[bytes], given_rows: NDArray[Any], complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=complaint):
        shelf(tmp_path).put(given_keys, given_rows)


@pytest.mark.parametrize("rows_at_most", [1, 3, 5, 7, 100])
def test_chunks_go_through_a_view_in_order(rows_at_most: int, tmp_path: Path) -> None:
    ours = small(tmp_path)
    put(ours, *range(30))
    order = [*range(12), 29, 3, 17, 16, *range(18, 29)]
    chunks = list(ours.view(keys(*order)).chunks(rows_at_most))
    assert max(map(len, chunks)) <= rows_at_most
    np.testing.assert_array_equal(np.concatenate(chunks), rows(*order))


def test_a_row_may_be_longer_than_a_segment(tmp_path: Path) -> None:
    ours = shelf(tmp_path, width=1000, most_bytes=3 * 4016)
    ours.put(keys(1, 2, 3), rows(1, 2, 3, width=1000))
    np.testing.assert_array_equal(ours.view(keys(3, 1))[:], rows(3, 1, width=1000))


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_going_through_a_large_view_keeps_little_of_it_in_memory(tmp_path: Path) -> None:
    ours = Shelf(tmp_path, (2**18,), np.float32, most_bytes=ROOMY)  # rows of 1 MB
    for number in range(0, 256, 32):
        ours.put(keys(*range(number, number + 32)), rows(*range(number, number + 32), width=2**18))
    for order in (np.arange(256), np.random.default_rng(0).permutation(256)):
        view = ours.view(keys(*order.tolist()))
        before, most, total = resident_bytes(), 0, 0.0
        for chunk in view.chunks(16):
            total += float(chunk[:, ::1000].mean(axis=1).sum())
            most = max(most, resident_bytes() - before)
        assert total == sum(range(256))
        assert most < 120 * 2**20, f"{most / 2**20:.0f} MB of 256 MB were in memory at once"


def test_the_bound_is_kept_and_the_oldest_rows_go_first(tmp_path: Path) -> None:
    ours = small(tmp_path)
    for number in range(200):
        put(ours, number)
        assert ours.bytes <= 8 * 5 * 48
        on_disk = sum(file.stat().st_size for file in tmp_path.iterdir() if file.suffix in (".rows", ".keys"))
        assert on_disk == ours.bytes
    places = ours.find(keys(*range(200)))
    kept = np.flatnonzero(places >= 0)
    assert len(kept) == len(ours) >= 35
    assert kept.tolist() == list(range(200 - len(kept), 200)), "what is kept are the newest"


def test_of_more_rows_than_fit_the_last_stay(tmp_path: Path) -> None:
    ours = small(tmp_path)
    put(ours, *range(100))
    assert (ours.find(keys(*range(65, 100))) >= 0).all()
    assert ours.bytes <= 8 * 5 * 48


def test_an_evicted_row_is_missing_for_everyone_and_can_be_put_again(tmp_path: Path) -> None:
    writer, reader = small(tmp_path), small(tmp_path)
    put(writer, *range(10))
    assert (reader.find(keys(*range(10))) >= 0).all()
    put(writer, *range(10, 60))
    assert (reader.find(keys(*range(10))) == -1).all()
    with pytest.raises(KeyError, match="10 of 10"):
        reader.view(keys(*range(10)))
    put(reader, 3)
    np.testing.assert_array_equal(writer.view(keys(3, 59))[:], rows(3, 59))


def test_a_view_outlives_the_eviction_of_its_rows(tmp_path: Path) -> None:
    ours = small(tmp_path)
    put(ours, *range(10))
    view = ours.view(keys(*range(10)))
    put(ours, *range(10, 100))
    assert (ours.find(keys(*range(10))) == -1).all()
    np.testing.assert_array_equal(view[:], rows(*range(10)))
    np.testing.assert_array_equal(np.concatenate(list(view.chunks(4))), rows(*range(10)))


def test_the_rows_that_are_there_can_be_had_without_those_that_are_not(tmp_path: Path) -> None:
    ours = small(tmp_path)
    put(ours, 1, 2, 3)
    found, view = ours.look_up(keys(7, 3, 1, 8))
    assert found.tolist() == [1, 2]
    np.testing.assert_array_equal(view[:], rows(3, 1))


def test_views_joined_one_by_one_hold_more_than_the_shelf_does(tmp_path: Path) -> None:
    ours = small(tmp_path)

    def views() -> Iterator[View]:
        yield ours.view([])
        for number in range(0, 100, 7):
            put(ours, *range(number, number + 7))
            yield ours.view(keys(*range(number, number + 7)))
        shutil.rmtree(tmp_path)  # begun anew, with files of the same names
        put(ours, *range(200, 203))
        yield ours.view(keys(202, 200))

    view = joined(views())
    assert len(ours) == 3
    np.testing.assert_array_equal(view[:], rows(*range(105), 202, 200))
    np.testing.assert_array_equal(np.concatenate(list(view.chunks(9))), rows(*range(105), 202, 200))
    np.testing.assert_array_equal(view.take(np.array([105, 3]))[:], rows(202, 3))


def test_a_shelf_with_a_smaller_bound_shrinks_when_something_is_put(tmp_path: Path) -> None:
    put(small(tmp_path), *range(40))
    smaller = shelf(tmp_path, most_bytes=2 * 5 * 48)
    put(smaller, 100)
    assert smaller.bytes <= 2 * 5 * 48
    np.testing.assert_array_equal(smaller.view(keys(39, 100))[:], rows(39, 100))


def test_another_shape_or_dtype_begins_anew(tmp_path: Path) -> None:
    old = shelf(tmp_path)
    put(old, 1, 2)
    view = old.view(keys(1, 2))
    wider = shelf(tmp_path, width=9)
    assert len(wider) == 0
    wider.put(keys(1), rows(5, width=9))
    np.testing.assert_array_equal(wider.view(keys(1))[:], rows(5, width=9))
    assert old.find(keys(1, 2)).tolist() == [-1, -1], "it does not take the others' rows for its own"
    np.testing.assert_array_equal(view[:], rows(1, 2))
    put(old, 3)
    np.testing.assert_array_equal(old.view(keys(3))[:], rows(3))
    assert len(wider) == 0


def test_a_folder_deleted_by_hand_is_begun_anew(tmp_path: Path) -> None:
    ours = shelf(tmp_path / "shelf")
    put(ours, 1, 2)
    shutil.rmtree(tmp_path / "shelf")
    assert ours.find(keys(1, 2)).tolist() == [-1, -1]
    put(ours, 2)
    np.testing.assert_array_equal(ours.view(keys(2))[:], rows(2))


def test_what_a_killed_writer_left_half_written_is_not_seen_and_overwritten(tmp_path: Path) -> None:
    ours = shelf(tmp_path)
    put(ours, 1, 2)
    with (tmp_path / "00000000.rows").open("ab") as file:
        file.write(rows(3, 4).tobytes()[:50])
    with (tmp_path / "00000000.keys").open("ab") as file:
        file.write(keys(3)[0][:7])
    again = shelf(tmp_path)
    assert len(again) == 2
    put(again, 5)
    np.testing.assert_array_equal(ours.view(keys(2, 5))[:], rows(2, 5))
    assert (ours.find(keys(3, 4)) == -1).all()


WRITER = """
import sys
from pathlib import Path
import numpy as np
from models.shelf import Shelf, key_of
folder, begin, end, at_once, width, most_bytes = Path(sys.argv[1]), *map(int, sys.argv[2:])
shelf = Shelf(folder, (width,), np.float32, most_bytes=most_bytes)
print("ready", flush=True)
for number in range(begin, end, at_once):
    numbers = np.arange(number, min(number + at_once, end))
    rows = np.repeat(numbers.astype(np.float32)[:, None], width, axis=1)
    shelf.put([key_of(str(n)) for n in numbers], rows)
"""


def writer(
    folder: Path, begin: int, end: int, *, at_once: int, width: int = 8, most_bytes: int = ROOMY
) -> subprocess.Popen[str]:
    numbers = map(str, (begin, end, at_once, width, most_bytes))
    child = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), *numbers], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


def check_every_found_row_is_whole(on: Shelf, width: int, count: int) -> int:
    places = on.find(keys(*range(count)))
    found = np.flatnonzero(places >= 0).tolist()
    np.testing.assert_array_equal(on.view(keys(*found))[:], rows(*found, width=width))
    return len(found)


@pytest.mark.slow
def test_a_writer_killed_at_any_moment_leaves_only_whole_rows(tmp_path: Path) -> None:
    width, count = 5000, 20_000
    bound = 40 * 50 * (4 * width + 16)
    watcher = shelf(tmp_path, width=width, most_bytes=bound)
    chance = np.random.default_rng(3)
    found = 0
    for attempt in range(6):
        begin = attempt * 2000
        with writer(tmp_path, begin, count, at_once=97, width=width, most_bytes=bound) as child:
            time.sleep(chance.uniform(0.0, 0.4))
            child.send_signal(signal.SIGKILL)
        found += check_every_found_row_is_whole(watcher, width, count)
        check_every_found_row_is_whole(shelf(tmp_path, width=width, most_bytes=bound), width, count)
    assert found, "no writer lived long enough to put anything"


def test_two_processes_write_at_once_while_a_third_reads(tmp_path: Path) -> None:
    reader = shelf(tmp_path)
    with writer(tmp_path, 0, 900, at_once=7) as one, writer(tmp_path, 600, 1500, at_once=11) as other:
        while one.poll() is None or other.poll() is None:
            check_every_found_row_is_whole(reader, 8, 1500)
    assert one.returncode == other.returncode == 0
    assert len(reader) == 1500, "what both wrote is there once"
    assert check_every_found_row_is_whole(reader, 8, 1500) == 1500


def test_threads_share_one_shelf(tmp_path: Path) -> None:
    ours = small(tmp_path)

    def put_and_look(number: int) -> bool:
        put(ours, number, number + 1)
        found = [n for n in range(100) if ours.find(keys(n))[0] >= 0]
        try:
            return bool((ours.view(keys(*found))[:] == rows(*found)).all())
        except KeyError:
            return True  # evicted in between

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(put_and_look, range(100)))


Step = tuple[str, list[int]]
STEPS = st.lists(st.tuples(st.sampled_from(["put", "view", "reopen"]), st.lists(st.integers(0, 40), max_size=12)))


@settings(deadline=None)
@given(STEPS)
def test_a_shelf_with_room_acts_like_a_dict(tmp_path_factory: pytest.TempPathFactory, steps: list[Step]) -> None:
    folder = tmp_path_factory.mktemp("shelf")
    ours, model = small(folder), dict[int, int]()
    for stamp, (step, numbers) in enumerate(steps):
        if step == "reopen":
            ours = small(folder)
        elif step == "view":
            there = [number for number in numbers if number in model]
            assert (ours.find(keys(*numbers)) >= 0).tolist() == [number in model for number in numbers]
            np.testing.assert_array_equal(ours.view(keys(*there))[:], rows(*(model[n] for n in there)))
        else:
            fresh = list(dict.fromkeys(n for n in numbers if n not in model))
            if len(model) + len(fresh) > 40:
                continue
            ours.put(keys(*numbers), rows(*[stamp] * len(numbers)))
            model |= dict.fromkeys(fresh, stamp)
    assert len(ours) == len(model)
    shutil.rmtree(folder)


def test_the_shape_of_a_shelf_can_be_asked_without_knowing_it(tmp_path: Path) -> None:
    assert shape_in(tmp_path / "none") is None
    Shelf(tmp_path / "some", (3, 4), np.uint8, most_bytes=2**20)
    assert shape_in(tmp_path / "some") == (3, 4)
    (tmp_path / "some" / "shelf.json").write_text("torn")
    assert shape_in(tmp_path / "some") is None


@pytest.mark.slow
def test_what_earlier_views_have_read_does_not_pile_up_in_memory(tmp_path: Path) -> None:
    def resident() -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("RssFile")) * 1024

    shelf = Shelf(tmp_path, (2**20,), np.uint8, most_bytes=2**30)
    keys = [key_of(str(place)) for place in range(480)]
    for start in range(0, 480, 16):
        shelf.put(keys[start : start + 16], np.full((16, 2**20), start % 256, np.uint8))
    before = resident()
    most = 0
    for start in range(0, 480, 16):
        assert shelf.view(keys[start : start + 16])[:].max() == start % 256
        most = max(most, resident() - before)
    assert KEPT_BYTES // 4 < most < KEPT_BYTES + 64 * 2**20, f"{most / 2**20:.0f} MB of 480 were in memory at once"
