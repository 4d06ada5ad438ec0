"""Data sets outside of Label Studio: what is read from folders and tables, and what people are told about bad ones."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest

from jobs.dataset import DatasetError, read
from tests.files import class_folders

ROWS = [{"image": "b/2.png", "label": "cat"}, {"image": "./1.png", "label": "dog"}, {"image": "3.png", "label": "cat"}]
LABELS = {"1.png": "dog", "3.png": "cat", "b/2.png": "cat"}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".parquet":
        parquet.write_table(arrow.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n\n" for row in rows))
    else:
        lines = [list(rows[0]), *(row.values() for row in rows)]
        path.write_text("\ufeff" + "".join(",".join(map(str, line)) + "\r\n" for line in lines))
    return path


def test_sub_folders_are_classes_and_hidden_or_other_files_are_none(tmp_path: Path) -> None:
    class_folders(tmp_path, 4, ["dog", "cat"])
    (tmp_path / "dog" / "puppies").mkdir()
    (tmp_path / "dog" / "puppies" / "9.JPEG").write_bytes(b"")
    (tmp_path / "dog" / "notes.txt").write_text("")
    (tmp_path / "dog" / ".thumb.png").write_bytes(b"")
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "1.png").write_bytes(b"")
    found = read(tmp_path)
    assert (found.root, found.source, found.classes) == (tmp_path.resolve(), "", ["cat", "dog"])
    assert list(found.labels.items()) == [
        ("cat/0001.png", "cat"),
        ("cat/0003.png", "cat"),
        ("dog/0000.png", "dog"),
        ("dog/0002.png", "dog"),
        ("dog/puppies/9.JPEG", "dog"),
    ]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_a_table_says_the_same_in_every_format_and_order(tmp_path: Path, suffix: str) -> None:
    table = write(tmp_path / f"table{suffix}", ROWS)
    found = read(table)
    assert (found.root, found.labels, list(found.labels)) == (tmp_path.resolve(), LABELS, sorted(LABELS))
    assert read(write(table, ROWS[::-1])) == found
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    beside = read(folder, str(table))
    assert (beside.root, beside.labels) == (folder.resolve(), LABELS)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_columns_go_by_their_usual_names_or_the_one_given(tmp_path: Path, suffix: str) -> None:
    rows = [{"Filename": f"{n}.png", "class": n % 2, "species": f"s{n}"} for n in range(4)]
    table = write(tmp_path / f"table{suffix}", rows)
    usual, named = read(table), read(table, "species")
    assert usual.labels == {"0.png": "0", "1.png": "1", "2.png": "0", "3.png": "1"}
    assert named.labels["3.png"] == "s3"
    assert usual.source != named.source


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"photo": "1.png", "label": "a"}], "no image column: call one image, file, .* It has: 'photo', 'label'"),
        ([{"image": "1.png", "kind": "a"}], "no label column: .*--labels COLUMN. It has: 'image', 'kind'"),
        ([{"image": "1.png", "label": "a"}], "one class only, 'a'"),
        ([{"image": "1.png", "label": ""}], "1.png has no label"),
        ([{"image": "", "label": "a"}], "the path of an image is expected"),
        ([{"image": "../1.png", "label": "a"}], "'../1.png' leaves the folder"),
        ([{"image": "a/../../1.png", "label": "a"}], "leaves the folder"),
        ([{"image": "/etc/passwd", "label": "a"}], "'/etc/passwd' leaves the folder"),
        ([{"image": "https://host.test/1.png", "label": "a"}], "is a web address"),
        ([{"image": "1.png", "label": "a"}, {"image": "./1.png", "label": "b"}], "1.png is there twice, first in"),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_a_bad_table_is_told_what_is_wrong(tmp_path: Path, suffix: str, rows: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(DatasetError, match=said):
        read(write(tmp_path / f"table{suffix}", rows))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("table.csv", b"", "is empty"),
        ("table.jsonl", b"", "is empty"),
        ("table.csv", b"image,label\n", "has no rows"),
        ("table.csv", b"image,label\n\xff\xfe.png,a\n", "cannot be read as a table in UTF-8"),
        ("table.jsonl", b"{not json}\n", "line 1 is not JSON"),
        ("table.jsonl", b"[1]\n", "line 1 is not a JSON object"),
        ("table.parquet", b"image,label\n", "is not a Parquet file"),
        ("table.txt", b"image,label\n", "give a .csv, .parquet, .jsonl file"),
    ],
)
def test_a_file_that_is_no_table_is_told_so(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DatasetError, match=said):
        read(tmp_path / name)


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"nowhere: there is no such file or folder"):
        read(tmp_path / "nowhere")
    with pytest.raises(DatasetError, match="holds no images; one sub-folder per class"):
        read(tmp_path)
    with pytest.raises(DatasetError, match=r"labels\.csv: there is no such file"):
        read(tmp_path, str(tmp_path / "labels.csv"))
    table = write(tmp_path / "table.csv", ROWS)
    with pytest.raises(DatasetError, match="no column 'species'; --labels may name one of: 'image', 'label'"):
        read(table, "species")
    (tmp_path / "1.png").write_bytes(b"")
    with pytest.raises(DatasetError, match=r"1 images outside of any sub-folder: .*--labels FILE"):
        read(tmp_path)


def test_one_folder_is_one_class_too_few(tmp_path: Path) -> None:
    class_folders(tmp_path, 2, ["cat"])
    with pytest.raises(DatasetError, match="one class only, 'cat'"):
        read(tmp_path)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = write(tmp_path / "table.parquet", ROWS)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DatasetError, match=r"pip install 'iwes-label-studio\[parquet\]'"):
        read(table)


def test_images_inside_of_a_parquet_file_are_no_paths(tmp_path: Path) -> None:
    table = write(tmp_path / "table.parquet", [{"image": {"bytes": b"x" * 4000, "path": "1.png"}, "label": "a"}])
    with pytest.raises(DatasetError, match="row 1: the path of an image is expected") as error:
        read(table)
    assert len(str(error.value)) < 400
