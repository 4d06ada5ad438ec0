"""A disk that is full while something is written costs what was being written, and nothing else."""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import numpy as np
import pytest

from models import checkpoint, durable
from models.classifier import Classifier
from models.shelf import Shelf, key_of
from models.workshop import Workshop
from tests.full_disk import no_file_beyond
from tests.models.test_checkpoint import ORIGIN, successor

__all__ = ["successor"]

SMALL = 4096


def test_the_last_checkpoint_stays_and_the_reason_is_told(
    tmp_path: Path, classifier: Classifier, successor: Classifier, workshop: Workshop
) -> None:
    folder = checkpoint.save(tmp_path / "round-1", classifier, ORIGIN)
    before = sorted(path.name for path in folder.iterdir())
    with no_file_beyond(SMALL), pytest.raises(OSError, match=r"bytes could not be kept.*weights-") as error:
        checkpoint.save(folder, successor, ORIGIN)
    assert error.value.errno == errno.EFBIG
    assert sorted(path.name for path in folder.iterdir()) == before, "nothing half-written takes room"
    assert checkpoint.load(folder, workshop).version == classifier.version
    checkpoint.save(folder, successor, ORIGIN)
    assert checkpoint.load(folder, workshop).version == successor.version


def test_a_new_checkpoint_that_does_not_fit_is_no_checkpoint(
    tmp_path: Path, classifier: Classifier, workshop: Workshop
) -> None:
    good = checkpoint.save(tmp_path / "round-1", classifier, ORIGIN)
    with no_file_beyond(SMALL), pytest.raises(OSError, match="could not be kept"):
        checkpoint.save(tmp_path / "round-2", classifier, ORIGIN)
    assert list((tmp_path / "round-2").iterdir()) == []
    with pytest.raises(checkpoint.BadCheckpoint):
        checkpoint.load(tmp_path / "round-2", workshop)
    assert checkpoint.load(good, workshop).version == classifier.version


def test_a_shelf_keeps_what_it_had_and_takes_more_once_there_is_room(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, (256,), np.float32, most_bytes=2**24)
    keys = [key_of(str(n)) for n in range(40)]
    rows = np.repeat(np.arange(40, dtype=np.float32)[:, None], 256, axis=1)
    shelf.put(keys[:3], rows[:3])
    with no_file_beyond(SMALL), pytest.raises(OSError, match=r"\.rows"):
        shelf.put(keys[3:], rows[3:])
    assert sum(path.stat().st_size for path in tmp_path.glob("*.rows")) == rows[:3].nbytes
    for reader in (shelf, Shelf(tmp_path, (256,), np.float32, most_bytes=2**24)):
        found, view = reader.look_up(keys)
        assert found.tolist() == [0, 1, 2]
        np.testing.assert_array_equal(view[:], rows[:3])
    shelf.put(keys[3:], rows[3:])
    np.testing.assert_array_equal(shelf.view(keys)[:], rows)


def test_what_killed_writers_left_is_cleared_and_whoever_writes_now_is_left_alone(tmp_path: Path) -> None:
    """A worker starts after a power failure; on another host one is in the middle of writing."""
    left, written = tmp_path / "1" / "a" / "weights.partial", tmp_path / "1" / "b" / "weights.partial"
    whole = tmp_path / "1" / "a" / "card.json"
    for path in (left, written, whole):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"half")
    with durable.only_writer(written.parent):
        clearing = threading.Thread(target=durable.clear, args=(tmp_path,))
        clearing.start()
        written.replace(written.with_name("weights"))
    clearing.join(10)
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["card.json", "weights"]
    durable.clear(tmp_path / "nowhere")
