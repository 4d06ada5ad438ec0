"""Formats of many files: images with their own bytes, in folders that no name can lead out of."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from urllib.parse import unquote
from zipfile import ZIP_STORED, ZipFile

import numpy as np
import pytest
from flask.testing import FlaskClient

import iwes
from backend.exports import export as exporting
from backend.exports.class_folders import class_folders
from backend.exports.errors import ExportError, NotNow
from backend.exports.export import export
from backend.exports.wish import Format, Wish
from jobs.images.reasons import Away
from jobs.workplace import Workplace
from store.database import Store
from store.tables import Project
from tests.exports.pictures import pictures_project
from tests.exports.test_download import client

__all__ = ["client"]

NAMES = ["../../up", "a/b", "CON", "cat", "Cat", ".hidden", "=1+1", "größe", "x" * 300, "two words"]


@pytest.fixture
def digits(store: Store, tmp_path: Path) -> Project:
    pixels = np.random.default_rng(3).integers(0, 16, (30, 64))
    return pictures_project(store, tmp_path / "photos", pixels, [n % 10 for n in range(30)], NAMES)


def test_an_image_folder_has_each_image_under_its_class_with_its_own_bytes(
    place: Workplace, digits: Project, tmp_path: Path
) -> None:
    out = tmp_path / "set"
    done = export(place, digits.id, Wish(Format.IMAGEFOLDER), out)
    assert done.rows == 30
    manifest = json.loads((out / "manifest.json").read_text())
    assert sorted(manifest["folders"].values()) == sorted(NAMES), "each folder's class can be read again"
    with (out / "metadata.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 30
    for row in rows:
        folder, _, name = row["file_name"].partition("/")
        assert manifest["folders"][folder] == row["class"].removeprefix("'")
        assert (out / folder / name).read_bytes() == (tmp_path / "photos" / row["image"]).read_bytes()
    written = [path for path in tmp_path.rglob("*") if path.is_file() and "home" not in path.parts]
    assert len(written) == 30 + 30 + 2, "nothing lies anywhere else"


def test_names_of_classes_are_safe_folders_and_can_be_read_again() -> None:
    folders = class_folders(NAMES)
    assert len({name.lower() for name in folders.values()}) == len(NAMES), "even where A and a are one"
    for name, folder in folders.items():
        assert "/" not in folder
        assert folder not in ("", ".", "..")
        assert folder[0] not in ".-="
        assert folder.upper() != "CON"
        assert len(folder.encode()) <= 120
        assert unquote(folder) == name or len(name) > 100
    assert folders["cat"] == "cat"
    assert folders["two words"] == "two%20words"


def test_an_export_of_many_files_replaces_its_own_kind_and_nothing_else(
    place: Workplace, digits: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "set"
    export(place, digits.id, Wish(Format.IMAGEFOLDER), out)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    export(place, digits.id, Wish(Format.IMAGEFOLDER), out)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before

    def broken(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(exporting._FOLDERS, Format.IMAGEFOLDER, broken)
    with pytest.raises(OSError, match="No space left"):
        export(place, digits.id, Wish(Format.IMAGEFOLDER), out)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert not list(tmp_path.glob(".set*"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(ExportError, match="holds something else"):
        export(place, digits.id, Wish(Format.IMAGEFOLDER), tmp_path / "mine")


def test_an_image_that_cannot_be_read_is_left_out_and_named(place: Workplace, digits: Project, tmp_path: Path) -> None:
    (tmp_path / "photos" / "3.png").write_bytes(b"<html>log in</html>")
    (tmp_path / "photos" / "4.png").unlink()
    done = export(place, digits.id, Wish(Format.IMAGEFOLDER), tmp_path / "set")
    assert done.rows == 28
    assert list(done.manifest["left_out"]) == ["3", "4"]
    assert "HTML" in done.manifest["left_out"]["3"]


def test_an_image_that_cannot_be_had_now_fails_the_whole_export(
    place: Workplace, digits: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> bytes:
        raise Away("the storage is away")

    monkeypatch.setattr("jobs.images.folder.Folder.fetch", away)
    with pytest.raises(NotNow, match="task 1 cannot be had now: the storage is away"):
        export(place, digits.id, Wish(Format.IMAGEFOLDER), tmp_path / "set")
    assert not (tmp_path / "set").exists()


def test_a_zip_is_stored_and_the_same_for_the_same_state(
    client: FlaskClient, place: Workplace, digits: Project, tmp_path: Path
) -> None:
    address = f"/projects/{digits.id}/export?format=imagefolder"
    first = client.get(address)
    for path in place.settings.exports_folder.iterdir():
        path.unlink()
    assert client.get(address).data == first.data
    (tmp_path / "set.zip").write_bytes(first.data)
    export(place, digits.id, Wish(Format.IMAGEFOLDER), tmp_path / "project-1")
    with ZipFile(tmp_path / "set.zip") as archive:
        assert archive.testzip() is None
        assert {entry.compress_type for entry in archive.infolist()} == {ZIP_STORED}
        for entry in archive.infolist():
            assert archive.read(entry) == (tmp_path / "project-1" / entry.filename).read_bytes()


@pytest.mark.parametrize("kind", list(Format))
def test_every_format_is_loaded_again_and_says_the_same(
    place: Workplace, digits: Project, tmp_path: Path, kind: Format
) -> None:
    out = tmp_path / f"set{kind.suffix}"
    done = export(place, digits.id, Wish(kind), out)
    export(place, digits.id, Wish(Format.JSONL), tmp_path / "plain.jsonl")
    loaded, plain = iwes.load_training_set(out), iwes.load_training_set(tmp_path / "plain.jsonl")
    assert len(loaded) == 30
    assert loaded.classes == tuple(NAMES)
    assert loaded.manifest == done.manifest
    for name, column in plain.columns.items():
        assert loaded.columns[name].tolist() == column.tolist(), name
    read = (tmp_path / "photos" / "1.png").read_bytes()
    image = loaded.images[0]
    assert (image.read_bytes() if isinstance(image, Path) else image) in (read, "1.png")


def test_what_is_no_export_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "set.zip").touch()
    for name, said in (("folder", "neither metadata.csv"), ("set.zip", "unpack it first"), ("x.csv", "no such file")):
        with pytest.raises(iwes.IwesError, match=said):
            iwes.load_training_set(tmp_path / name)


def test_a_table_that_names_files_elsewhere_is_refused(place: Workplace, digits: Project, tmp_path: Path) -> None:
    out = tmp_path / "set"
    export(place, digits.id, Wish(Format.IMAGEFOLDER), out)
    table = (out / "metadata.csv").read_text()
    (out / "metadata.csv").write_text(table.replace("cat/", "../../../etc/", 1))
    with pytest.raises(iwes.IwesError, match="outside of the folder"):
        iwes.load_training_set(out)
