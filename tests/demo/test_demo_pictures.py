"""The demo's images: where they come from, how they are split, and what is said when they cannot be used."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from backend.demo.digits import SIDE, Digit
from backend.demo.own_images import DataError, OwnImages, parse_classes
from backend.demo.pictures import Pictures, prepare, split


def draw(path: Path, shade: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8), (shade, shade, shade)).save(path)


@pytest.fixture
def sorted_folder(tmp_path: Path) -> Path:
    for number in range(10):
        draw(tmp_path / "Own Set" / "cat" / f"cat {number}.png", 10)
        draw(tmp_path / "Own Set" / "dog" / f"dog {number}.JPG", 200)
    (tmp_path / "Own Set" / "cat" / "notes.txt").write_text("not an image")
    return tmp_path / "Own Set"


@pytest.fixture
def flat_folder(tmp_path: Path) -> Path:
    for number in range(10):
        draw(tmp_path / "flat" / f"{number}.png", number)
    return tmp_path / "flat"


def test_folder_per_class_gives_a_stratified_pool_and_held_out_part(sorted_folder: Path, tmp_path: Path) -> None:
    pictures = prepare(OwnImages(sorted_folder), tmp_path / "out")
    assert pictures.classes == ["cat", "dog"]
    assert Counter(picture.truth for picture in pictures.pool) == {"cat": 8, "dog": 8}
    assert Counter(picture.truth for picture in pictures.held_out) == {"cat": 2, "dog": 2}
    for picture in [*pictures.pool, *pictures.held_out]:
        shade = np.asarray(Image.open(pictures.root / picture.path)).mean()
        assert (shade < 100) == (picture.truth == "cat")


def test_names_of_files_do_not_give_the_label_away(sorted_folder: Path, tmp_path: Path) -> None:
    pictures = prepare(OwnImages(sorted_folder), tmp_path / "out")
    names = [Path(picture.path).stem for picture in pictures.pool]
    assert names == [f"{number:05d}" for number in range(1, 17)]
    assert len({picture.truth for picture in pictures.pool[:8]}) == 2


def test_flat_folder_with_classes_is_an_unlabelled_pool(flat_folder: Path, tmp_path: Path) -> None:
    pictures = prepare(OwnImages(flat_folder, ["cat", "dog"]), tmp_path / "out")
    assert pictures.classes == ["cat", "dog"]
    assert len(pictures.pool) == 10
    assert pictures.held_out == []
    assert not pictures.labelled


def test_flat_folder_without_classes_is_a_clear_error(flat_folder: Path) -> None:
    with pytest.raises(DataError, match="flat folder: name the classes to choose from, CLASSES=a,b,c"):
        OwnImages(flat_folder)


def test_missing_empty_and_mixed_folders_are_clear_errors(sorted_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        OwnImages(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="holds no images"):
        OwnImages(tmp_path / "empty")
    draw(sorted_folder / "stray.png", 0)
    with pytest.raises(DataError, match="both images and folders"):
        OwnImages(sorted_folder)


def test_classes_that_lack_a_folder_of_images_or_repeat_are_clear_errors(
    sorted_folder: Path, flat_folder: Path
) -> None:
    with pytest.raises(DataError, match="CLASSES lacks dog"):
        OwnImages(sorted_folder, ["cat", "bird"])
    with pytest.raises(DataError, match="two or more different classes"):
        OwnImages(flat_folder, ["cat", "cat"])
    assert OwnImages(sorted_folder, ["bird", "cat", "dog"]).classes == ["bird", "cat", "dog"]


def test_second_preparation_reads_what_the_first_wrote(sorted_folder: Path, tmp_path: Path) -> None:
    first = prepare(OwnImages(sorted_folder), tmp_path / "out")
    before = {path: path.stat().st_mtime_ns for path in first.root.rglob("*")}
    second = prepare(OwnImages(sorted_folder), tmp_path / "out")
    assert second == first == Pictures.load(first.root)
    assert before == {path: path.stat().st_mtime_ns for path in first.root.rglob("*")}


def test_preparation_that_was_cut_short_is_done_again(sorted_folder: Path, tmp_path: Path) -> None:
    first = prepare(OwnImages(sorted_folder), tmp_path / "out")
    (first.root / "index.json").unlink()
    (first.root / first.pool[0].path).unlink()
    assert prepare(OwnImages(sorted_folder), tmp_path / "out") == first
    assert (first.root / first.pool[0].path).exists()


def test_split_is_the_same_every_time() -> None:
    truths = [str(number % 10) for number in range(500)]
    pool, held_out = split(truths)
    assert (pool, held_out) == split(truths)
    assert sorted([*pool, *held_out]) == list(range(500))
    assert set(Counter(truths[position] for position in held_out).values()) == {10}


def test_digit_is_drawn_large_and_dark_on_white(tmp_path: Path) -> None:
    ink = np.zeros((28, 28), dtype=np.uint8)
    ink[10:18, 10:18] = 255
    Digit(ink, "0").write(tmp_path / "digit.png")
    drawn = np.asarray(Image.open(tmp_path / "digit.png"))
    assert drawn.shape == (SIDE, SIDE)
    assert drawn[0, 0] == 255
    assert drawn[SIDE // 2, SIDE // 2] < 10


def test_classes_are_read_from_a_list_with_commas() -> None:
    assert parse_classes(" cat, dog,,house cat ") == ["cat", "dog", "house cat"]
