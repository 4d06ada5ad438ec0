"""Images of a data set: read from its folder and from nowhere else, and never an old version of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jobs.images import ImageSource, NothingServed
from store.tables import FOLDER, Project
from studio.files import MOST_BYTES
from tests.files import picture


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "photos"
    (root / "cats").mkdir(parents=True)
    (root / "cats" / "1.png").write_bytes(picture(shade=40))
    (tmp_path / "secret.png").write_bytes(picture(shade=200))
    return root


@pytest.fixture
def source(root: Path, tmp_path: Path) -> ImageSource:
    return ImageSource(Project(studio_url=f"{FOLDER}{root}", field="image"), None, tmp_path / "cache", 28)


def shade(source: ImageSource, path: str) -> float:
    loaded = source.load([{"image": path}])
    assert not loaded.bad
    return float(loaded.images[:].mean())


def reason(source: ImageSource, path: str) -> str:
    loaded = source.load([{"image": path}])
    assert not len(loaded.good)
    return loaded.bad[0]


def test_an_image_is_read_and_a_changed_one_is_read_again(source: ImageSource, root: Path) -> None:
    file = root / "cats" / "1.png"
    assert 30 < shade(source, "cats/1.png") < 60
    first = source.keys([{"image": "cats/1.png"}])
    assert first != [None]
    was = file.stat()
    file.write_bytes(picture(shade=220))
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns + 1))
    assert source.keys([{"image": "cats/1.png"}]) == [None]
    assert shade(source, "cats/1.png") > 180
    assert source.keys([{"image": "cats/1.png"}]) not in (first, [None])


def test_an_image_that_changes_while_it_is_read_is_not_kept_under_its_new_state(
    source: ImageSource, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jobs.images import source as module

    file = root / "cats" / "1.png"
    decode = module.decode

    def decode_late(content: bytes, *, size: int) -> object:
        file.write_bytes(picture(shade=220))
        os.utime(file, ns=(1, 1))
        return decode(content, size=size)

    monkeypatch.setattr(module, "decode", decode_late)
    assert shade(source, "cats/1.png") < 60
    monkeypatch.setattr(module, "decode", decode)
    assert shade(source, "cats/1.png") > 180


def test_nothing_outside_of_the_folder_is_read(source: ImageSource, root: Path) -> None:
    secret = root.parent / "secret.png"
    (root / "link.png").symlink_to(secret)
    (root / "up").symlink_to(root.parent)
    (root / "round").symlink_to("round")
    (root / "inner.png").symlink_to("cats/1.png")
    for path in ("../secret.png", str(secret), "link.png", "up/secret.png", "cats/../../secret.png", "."):
        assert "leads out of the folder" in reason(source, path), path
    assert reason(source, "round")
    assert 30 < shade(source, "inner.png") < 60, "a link that stays inside is none"


def test_what_is_no_image_file_is_set_aside_with_its_reason(source: ImageSource, root: Path) -> None:
    os.mkfifo(root / "pipe.png")
    with (root / "large.png").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    (root / "text.png").write_text("hello")
    assert "No such file" in reason(source, "cats/2.png")
    assert "is not a file" in reason(source, "pipe.png")
    assert "cats" in reason(source, "cats")
    assert "more than 40 MB" in reason(source, "large.png")
    assert "looks like text" in reason(source, "text.png")
    assert "is no path" in reason(source, "a\0b.png")


def test_a_folder_that_is_gone_blames_no_image(source: ImageSource, root: Path) -> None:
    root.rename(root.parent / "moved")
    loaded = source.load([{"image": "cats/1.png"}])
    assert "is not there now" in loaded.away[0]
    with pytest.raises(NothingServed, match="is not there now"):
        source.load([{"image": "cats/1.png"}, {"image": "cats/2.png"}])


def test_a_project_of_label_studio_needs_a_client(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a client is needed"):
        ImageSource(Project(studio_url="http://studio.test", field="image"), None, tmp_path, 28)
