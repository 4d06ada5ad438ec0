"""Images are fetched once, by as many at a time as like; a bad one is set aside, and a storage that is away blames
none."""

from __future__ import annotations

import base64
import io
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from PIL import Image

from jobs.images import ImageSource, NothingServed, cloud
from jobs.images.location import locate
from jobs.images.reasons import Away
from models.images import decode
from models.shelf import key_of
from store.database import Store
from store.tables import Project
from studio.client import Client
from studio.errors import Unreachable
from studio.files import MOST_BYTES
from tests.conftest import make_project
from tests.files import Files, picture
from tests.jobs.web_host import WebHost, file, redirect

CLOUD = "memory://bucket/photos/"


@pytest.fixture
def files() -> Iterator[Files]:
    with Files() as files:
        yield files


@pytest.fixture
def project(store: Store) -> Project:
    return make_project(store)


@pytest.fixture
def source(files: Files, project: Project, tmp_path: Path) -> ImageSource:
    return ImageSource(project, Client(files.url, "t" * 40), tmp_path, 28, prefixes=(CLOUD,))


def images(*addresses: str) -> list[dict[str, str | None]]:
    return [{"image": address} for address in addresses]


def test_an_image_crosses_the_network_once(files: Files, source: ImageSource, tmp_path: Path) -> None:
    files.held["/data/1.png"] = picture()
    for _ in range(3):
        assert source.load(images("/data/1.png")).images.shape == (1, 3, 28, 28)
    assert files.asked == ["/data/1.png"]
    assert sorted(folder.name for folder in tmp_path.iterdir() if folder.name != "home") == ["addresses", "pixels-28"]


def test_many_who_fetch_one_image_at_once_all_get_it_whole(files: Files, source: ImageSource) -> None:
    files.held["/data/big.png"] = picture(900)
    with ThreadPoolExecutor(8) as threads:
        loads = list(threads.map(lambda _: source.load(images(*["/data/big.png"] * 4)), range(16)))
    assert all(not loaded.bad for loaded in loads)
    whole = decode(picture(900), size=28)
    assert all((np.asarray(loaded.images) == whole).all() and len(loaded.images) == 4 for loaded in loads)


def test_a_bad_image_is_told_by_its_place_and_the_others_are_loaded(files: Files, source: ImageSource) -> None:
    files.held |= {"/data/1.png": picture(noise=1), "/data/2.png": b"<html>", "/data/3.png": picture(noise=3)}
    four = images(*(f"/data/{n}.png" for n in (1, 2, 3, 4)))
    nowhere: dict[str, str | None] = {"image": None}
    tasks = [*four, nowhere, *images("http://elsewhere/x.png")]
    for _ in range(2):
        loaded = source.load(tasks)
        assert loaded.good.tolist() == [0, 2]
        assert sorted(loaded.bad) == [1, 3, 4, 5]
        assert "holds no address" in loaded.bad[4]
        assert "not on the connected Label Studio" in loaded.bad[5]
        np.testing.assert_array_equal(loaded.images[:], [decode(picture(noise=n), size=28) for n in (1, 3)])


def test_images_come_in_the_order_asked_for_whether_they_were_known_or_not(files: Files, source: ImageSource) -> None:
    files.held |= {f"/data/{n}.png": picture(noise=n) for n in range(300)}
    source.load(images(*(f"/data/{n}.png" for n in range(0, 300, 3))))
    order = np.random.default_rng(0).permutation(300).tolist()
    loaded = source.load(images(*(f"/data/{n}.png" for n in order)))
    assert loaded.good.tolist() == list(range(300))
    assert loaded.keys == [key_of(picture(noise=n)) for n in order]
    np.testing.assert_array_equal(loaded.images[:], [decode(picture(noise=n), size=28) for n in order])
    assert len(files.asked) == 300


def test_the_same_picture_under_two_addresses_is_kept_once(files: Files, source: ImageSource, tmp_path: Path) -> None:
    files.held |= {"/data/1.png": picture(), "/data/2.jpg": picture()}
    loaded = source.load(images("/data/1.png", "/data/2.jpg", f"{files.url}/data/1.png"))
    assert loaded.keys == [key_of(picture())] * 3
    assert (tmp_path / "pixels-28" / "00000000.rows").stat().st_size == 3 * 28 * 28


def test_content_is_known_without_fetching_once_it_was_fetched(files: Files, source: ImageSource) -> None:
    files.held |= {"/data/1.png": picture(noise=1), "/data/2.png": picture(noise=2)}
    tasks = images("/data/1.png", "/data/2.png", f"{files.url}/data/1.png")
    assert source.keys([*tasks, {}]) == [None] * 4
    assert files.asked == []
    source.load(tasks[:1])
    assert source.keys([*tasks, {}]) == [key_of(picture(noise=1)), None, key_of(picture(noise=1)), None]
    assert files.asked == ["/data/1.png"]


def test_another_size_knows_the_content_but_needs_the_picture_again(
    files: Files, source: ImageSource, project: Project, tmp_path: Path
) -> None:
    files.held["/data/1.png"] = picture()
    source.load(images("/data/1.png"))
    larger = ImageSource(project, Client(files.url, "t" * 40), tmp_path, 32)
    assert larger.keys(images("/data/1.png")) == [key_of(picture())]
    assert larger.load(images("/data/1.png")).images.shape == (1, 3, 32, 32)
    assert len(files.asked) == 2


def test_two_label_studios_with_the_same_paths_are_not_mixed_up(
    files: Files, source: ImageSource, project: Project, tmp_path: Path
) -> None:
    files.held["/data/1.png"] = picture(noise=1)
    source.load(images("/data/1.png"))
    with Files() as others:
        others.held["/data/1.png"] = picture(noise=2)
        other = ImageSource(project, Client(others.url, "t" * 40), tmp_path, 28)
        loaded = other.load(images("/data/1.png"))
    np.testing.assert_array_equal(loaded.images[:], [decode(picture(noise=2), size=28)])


@pytest.mark.slow
def test_more_images_than_the_cache_has_room_for_are_loaded_all_the_same(
    files: Files, project: Project, tmp_path: Path
) -> None:
    source = ImageSource(project, Client(files.url, "t" * 40), tmp_path, 28, most_bytes=1)
    files.held |= {f"/data/{n}.png": picture(noise=n) for n in range(560)}
    tasks = images(*(f"/data/{n}.png" for n in range(560)))
    expected = [decode(picture(noise=n), size=28) for n in range(560)]
    for _ in range(2):
        loaded = source.load(tasks)
        assert len(loaded.good) == 560
        np.testing.assert_array_equal(loaded.images[:], expected)
    kept = sum(file.stat().st_size for file in (tmp_path / "pixels-28").glob("*.rows"))
    assert kept <= 512 * 3 * 28 * 28


def test_a_storage_that_is_away_is_not_the_images_fault(files: Files, source: ImageSource) -> None:
    with pytest.raises(NothingServed, match=r"none of 3 images is served; the first: .*/data/1\.png"):
        source.load(images(*(f"/data/{n}.png" for n in (1, 2, 3))))


def test_a_label_studio_that_does_not_answer_raises(project: Project, tmp_path: Path) -> None:
    with Files() as gone:
        pass
    with pytest.raises(Unreachable):
        ImageSource(project, Client(gone.url, "t" * 40), tmp_path, 28).load(images("/data/1.png"))


def test_nothing_asked_for_is_nothing_loaded(source: ImageSource) -> None:
    loaded = source.load([])
    assert loaded.images.shape == (0, 3, 28, 28)
    assert (len(loaded.good), loaded.keys, loaded.bad) == (0, [], {})


def test_an_image_in_a_cloud_storage_under_an_allowed_prefix_is_loaded(source: ImageSource) -> None:
    storage = fsspec.filesystem("memory")
    storage.pipe("/bucket/photos/1 #100%.png", picture())
    storage.pipe("/bucket/secret/1.png", picture())
    storage.pipe("/bucket/photos/huge.png", bytes(MOST_BYTES + 1))
    addresses = [f"{CLOUD}1 #100%.png", f"{CLOUD}2.png", "memory://bucket/secret/1.png", f"{CLOUD}huge.png"]
    loaded = source.load(images(*addresses))
    storage.rm("/bucket", recursive=True)
    assert loaded.good.tolist() == [0]
    np.testing.assert_array_equal(loaded.images[0], decode(picture(), size=28))
    assert "2.png is not there" in loaded.bad[1]
    assert "under no allowed prefix" in loaded.bad[2]
    assert "has more than 40 MB" in loaded.bad[3]


@pytest.mark.parametrize(
    ("address", "package"),
    [
        pytest.param("s3://bucket/1.png", "s3fs", marks=pytest.mark.slow),  # to import it takes seconds
        ("gs://bucket/1.png", "gcsfs"),
        ("az://container/1.png", "adlfs"),
        ("oss://bucket/1.png", "ossfs"),
    ],
)
def test_a_missing_package_is_said_with_its_name(
    address: str, package: str, files: Files, project: Project, tmp_path: Path
) -> None:
    try:
        __import__(package)
        pytest.skip(f"{package} is installed")
    except ImportError:
        pass
    source = ImageSource(project, Client(files.url, "t" * 40), tmp_path, 28, prefixes=(address.rpartition("/")[0],))
    assert f"pip install {package}" in source.load(images(address)).away[0]


def data_uri(content: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def test_an_image_written_out_in_the_task_is_read_without_fetching(files: Files, source: ImageSource) -> None:
    wrapped = data_uri(picture()).replace("A", "A\n").replace("+", "%2B")
    loaded = source.load(images(data_uri(picture()), wrapped, data_uri(picture(), "image/svg+xml;charset=utf-8")))
    assert loaded.good.tolist() == [0, 1, 2]
    assert (loaded.images[:] == decode(picture(), size=28)).all()
    assert files.asked == []


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        (data_uri(picture())[:-3], "broken base64"),
        ("data:image/png;base64,***", "broken base64"),
        ("data:image/png;base64,ä", "broken base64"),
        ("data:image/png;base64,", "empty"),
        (data_uri(picture(), "text/html"), "does not begin with data:image"),
        ("data:image/png,raw", "does not begin with data:image"),
        (data_uri(b"<html>"), "looks like HTML"),
        (data_uri(bytes(MOST_BYTES + 1)), "more than 40 MB"),
        (data_uri(bytes(2 * MOST_BYTES)), "more than 40 MB"),
    ],
    ids=["cut off", "stars", "umlaut", "empty", "html", "not base64", "html as png", "too large", "far too large"],
)
def test_a_bad_image_written_out_in_the_task_is_set_aside(address: str, reason: str, source: ImageSource) -> None:
    assert reason in source.load(images(address)).bad[0]


def as_is(path: str) -> Callable[[Files, WebHost], str]:
    return lambda files, host: path


def served(name: str, content: bytes) -> Callable[[Files, WebHost], str]:
    def address(files: Files, host: WebHost) -> str:
        files.held[f"/data/{name}"] = content
        return f"/data/{name}"

    return address


def empty(files: Files, host: WebHost) -> str:
    host.answers["/photos/empty.png"] = file(b"")
    return f"{host.url}/photos/empty.png"


def redirected(files: Files, host: WebHost) -> str:
    host.answers["/photos/1.png"] = redirect("http://elsewhere.test/1.png")
    return f"{host.url}/photos/1.png"


def loopback(files: Files, host: WebHost) -> str:
    host.answers["/1.png"] = file(picture())
    return f"http://127.1:{host.port}/1.png"


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def header(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))


BOMB = header(28, 28) + chunk(b"zTXt", b"k\0\0" + zlib.compress(bytes(50_000_000), 9)) + picture()[33:]


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        (served("cut.png", picture()[:1000]), "truncated: the PNG file ends before the picture does"),
        (served("text.png", b"no picture"), "not an image: it looks like text"),
        (served("huge.png", header(50_000, 50_000) + chunk(b"IDAT", b"")), "too many pixels"),
        (served("bomb.png", BOMB), "decompression bomb"),
        (served("login.png", b"<!DOCTYPE html><title>Log in</title>"), "not an image: it looks like HTML"),
        (redirected, "is redirected to http://elsewhere.test/1.png, which is under no allowed prefix"),
        (loopback, "127.1 is 127.0.0.1, a loopback address, from where nothing is fetched"),
        (as_is("file:///etc/passwd"), "file:///etc/passwd is a file of this machine; such are never read"),
        (as_is("/data/%252e%252e/secret.png"), "climbs up with '..'"),
        (empty, "empty: the file has 0 bytes"),
        (as_is("/etc/passwd"), "not a file Label Studio serves under /data/"),
        (as_is("photos/1.png"), "is a plain path"),
        (as_is("/data/\x001.png"), "control character"),
        (as_is("\ud800"), "holds no address"),
    ],
    ids=[
        *("truncated", "text", "50,000 × 50,000", "bomb", "HTML", "redirect", "loopback", "file", "..", "empty"),
        *("path", "relative path", "control character", "half a character"),
    ],
)
def test_each_kind_of_bad_image_is_set_aside_with_its_reason(
    address: Callable[[Files, WebHost], str], reason: str, files: Files, project: Project, tmp_path: Path
) -> None:
    files.held["/data/good.png"] = picture()
    with WebHost() as host:
        prefixes = (f"{host.url}/photos/", f"http://127.1:{host.port}/")
        source = ImageSource(project, Client(files.url, "t" * 40), tmp_path, 28, prefixes=prefixes)
        loaded = source.load(images(address(files, host), "/data/good.png"))
        assert all(path.startswith("/photos/") for path in host.paths)
    assert loaded.good.tolist() == [1]
    assert reason in loaded.bad[0]


def test_a_wrong_extension_does_not_make_a_good_picture_bad(files: Files, source: ImageSource) -> None:
    jpeg = io.BytesIO()
    Image.new("RGB", (28, 28), "red").save(jpeg, "JPEG")
    files.held |= {"/data/png.jpg": picture(), "/data/jpeg.png": jpeg.getvalue()}
    assert source.load(images("/data/png.jpg", "/data/jpeg.png")).bad == {}


class Sleepy(MemoryFileSystem):
    """A storage that takes its time."""

    protocol = ("sleepy",)

    def open(self, *_: object, **__: object) -> object:
        time.sleep(5)
        raise AssertionError("it was waited for")


def test_a_storage_that_takes_too_long_is_given_up() -> None:
    fsspec.register_implementation("sleepy", Sleepy, clobber=True)
    began = time.monotonic()
    with pytest.raises(Away, match=r"sleepy://bucket/1\.png took longer than 0\.2 s"):
        cloud.fetch(locate("sleepy://bucket/1.png"), "sleepy://bucket/1.png", whole_seconds=0.2)
    assert time.monotonic() - began < 4
