"""Images come out of a real S3 server by s3fs: from under the allowed prefix, once, and each failure under its name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import fsspec
import numpy as np
import pytest

from jobs.images import ImageSource, Loaded, NothingServed, cloud
from models.images import decode
from store.tables import Project
from studio.client import Client
from tests.files import picture
from tests.jobs.cloud_storage import REGION, CloudStorage

pytestmark = pytest.mark.slow

PHOTOS = "s3://bucket/photos/"


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing of whoever runs the tests: neither keys and settings for AWS, nor a proxy."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    settings = {
        "AWS_CONFIG_FILE": str(tmp_path / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none"),
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_MAX_ATTEMPTS": "1",
        "NO_PROXY": "127.0.0.1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    forget()
    yield
    forget()


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Iterator[CloudStorage]:
    with CloudStorage() as storage:
        storage.make("bucket")
        point_to(storage, monkeypatch)
        yield storage


@pytest.fixture
def source(tmp_path: Path) -> ImageSource:
    return a_source(tmp_path)


def a_source(cache: Path, prefix: str = PHOTOS) -> ImageSource:
    return ImageSource(Project(field="image"), Client("http://studio.test", "t" * 40), cache, 28, prefixes=(prefix,))


def point_to(storage: CloudStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", storage.url)
    sign_in(monkeypatch, "anybody", "anything")


def sign_in(monkeypatch: pytest.MonkeyPatch, key: str, secret: str) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    forget()  # as a process started afterwards


def forget() -> None:
    """What s3fs knows of earlier storages and keys."""
    fsspec.get_filesystem_class("s3").clear_instance_cache()


def load(source: ImageSource, *addresses: str) -> Loaded:
    return source.load([{"image": address} for address in addresses])


def pixels(*noises: int) -> list[np.ndarray]:
    return [decode(picture(noise=noise), size=28) for noise in noises]


def test_images_cross_the_network_once_and_are_there_when_the_storage_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses = [f"{PHOTOS}{n}.png" for n in (3, 1, 2)]
    with CloudStorage() as storage:
        point_to(storage, monkeypatch)
        storage.make("bucket")
        for n in (1, 2, 3):
            storage.put(f"bucket/photos/{n}.png", picture(noise=n))
        first = load(a_source(tmp_path), *addresses)
        load(a_source(tmp_path), *addresses)
        for method in ("HEAD", "GET"):
            asked = sorted(line for line in storage.asked if line.startswith(method))
            assert asked == [f"{method} /bucket/photos/{n}.png" for n in (1, 2, 3)]
    again = load(a_source(tmp_path), *addresses)
    for loaded in (first, again):
        assert loaded.good.tolist() == [0, 1, 2]
        np.testing.assert_array_equal(loaded.images[:], pixels(3, 1, 2))


def test_a_key_is_taken_as_it_is_written(storage: CloudStorage, source: ImageSource) -> None:
    names = ["1 2.png", "#3.png", "100%.png", "%41.png", "a+b&c.png", "ä.png", "?.png", "a::b.png", "*.png", "//d.png"]
    for noise, name in enumerate(names):
        storage.put(f"bucket/photos/{name}", picture(noise=noise))
    loaded = load(source, *(PHOTOS + name for name in names))
    assert (loaded.bad, loaded.away) == ({}, {})
    np.testing.assert_array_equal(loaded.images[:], pixels(*range(len(names))))


def test_a_version_that_an_address_names_is_read(storage: CloudStorage, tmp_path: Path) -> None:
    storage.make("kept", versioned=True)
    old = storage.put("kept/1.png", picture(noise=1))
    storage.put("kept/1.png", picture(noise=2))
    loaded = load(a_source(tmp_path, "s3://kept/"), "s3://kept/1.png", f"s3://kept/1.png?versionId={old}")
    np.testing.assert_array_equal(loaded.images[:], pixels(2, 1))


def test_what_is_not_under_the_prefix_is_never_asked_for(storage: CloudStorage, source: ImageSource) -> None:
    storage.make("other")
    paths = [
        "bucket/photos/1.png",
        "bucket/secret/1.png",
        "bucket/photos-old/1.png",
        "bucket/1.png",
        "other/photos/1.png",
    ]
    for path in paths:
        storage.put(path, picture())
    loaded = load(source, *(f"s3://{path}" for path in paths))
    assert loaded.good.tolist() == [0]
    assert sorted(loaded.bad) == [1, 2, 3, 4]
    assert all("under no allowed prefix" in reason for reason in loaded.bad.values())
    assert storage.asked == ["HEAD /bucket/photos/1.png", "GET /bucket/photos/1.png"]


def test_a_missing_image_is_set_aside_and_found_once_it_is_there(storage: CloudStorage, source: ImageSource) -> None:
    storage.put("bucket/photos/1.png", picture(noise=1))
    two = [f"{PHOTOS}1.png", f"{PHOTOS}2.png"]
    loaded = load(source, *two)
    assert loaded.good.tolist() == [0]
    assert loaded.bad == {1: f"{PHOTOS}2.png is not there"}
    storage.put("bucket/photos/2.png", picture(noise=2))
    np.testing.assert_array_equal(load(source, *two).images[:], pixels(1, 2))


def test_what_is_no_picture_is_set_aside_with_its_reason(storage: CloudStorage, source: ImageSource) -> None:
    kept = {"login.png": b"<!DOCTYPE html><title>Log in</title>", "empty.png": b"", "cut.png": picture()[:1000]}
    for name, content in kept.items():
        storage.put(f"bucket/photos/{name}", content)
    storage.put("bucket/photos/folder/1.png", picture())
    loaded = load(source, *(PHOTOS + name for name in [*kept, "folder"]))
    assert loaded.away == {}
    assert "not an image: it looks like HTML" in loaded.bad[0]
    assert "empty: the file has 0 bytes" in loaded.bad[1]
    assert "truncated" in loaded.bad[2]
    assert "folder is not there" in loaded.bad[3]


def test_an_image_that_is_too_large_is_not_even_begun(
    storage: CloudStorage, source: ImageSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloud, "MOST_BYTES", 2**20)
    storage.put("bucket/photos/huge.png", bytes(2**20 + 1))
    assert load(source, f"{PHOTOS}huge.png").bad == {0: f"{PHOTOS}huge.png has more than 1 MB"}
    assert storage.asked == ["HEAD /bucket/photos/huge.png"]


def test_the_key_in_the_environment_opens_what_it_may(
    storage: CloudStorage, source: ImageSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("open", "locked"):
        storage.put(f"bucket/photos/{name}.png", picture(noise=1))
    sign_in(monkeypatch, *storage.guard(locked=["bucket/photos/locked.png"]))
    loaded = load(source, f"{PHOTOS}open.png", f"{PHOTOS}locked.png")
    np.testing.assert_array_equal(loaded.images[:], pixels(1))
    assert loaded.bad == {1: f"{PHOTOS}locked.png may not be read: Forbidden"}


def test_a_key_that_does_not_fit_blames_no_image(
    storage: CloudStorage, source: ImageSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = [f"{PHOTOS}1.png", f"{PHOTOS}2.png"]
    for n in (1, 2):
        storage.put(f"bucket/photos/{n}.png", picture(noise=n))
    key, secret = storage.guard()
    for wrong in (("AKIAOFNOBODY", secret), (key, "of nobody")):
        sign_in(monkeypatch, *wrong)
        with pytest.raises(
            NothingServed, match=r"none of 2 images is served; the first: .* may not be read: Forbidden"
        ):
            load(source, *two)
    sign_in(monkeypatch, key, secret)
    np.testing.assert_array_equal(load(source, *two).images[:], pixels(1, 2))


def test_without_a_key_an_image_is_away_and_nothing_is_asked_for(
    storage: CloudStorage, source: ImageSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    assert "NoCredentialsError" in load(source, f"{PHOTOS}1.png").away[0]
    assert storage.asked == []


def test_a_bucket_that_is_not_there_blames_no_image(storage: CloudStorage, tmp_path: Path) -> None:
    with pytest.raises(NothingServed, match=r"the first: s3://gone/\d\.png is not there"):
        load(a_source(tmp_path, "s3://gone/"), "s3://gone/1.png", "s3://gone/2.png")


def test_images_are_away_when_the_storage_is_gone_and_come_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with CloudStorage() as storage:
        point_to(storage, monkeypatch)
    source = a_source(tmp_path)
    loaded = load(source, f"{PHOTOS}1.png")
    assert loaded.bad == {}
    assert f"{PHOTOS}1.png cannot be fetched: EndpointConnectionError" in loaded.away[0]
    with pytest.raises(NothingServed, match="none of 2 images is served"):
        load(source, f"{PHOTOS}1.png", f"{PHOTOS}2.png")
    with CloudStorage(port=storage.port) as storage:
        storage.make("bucket")
        storage.put("bucket/photos/1.png", picture(noise=1))
        np.testing.assert_array_equal(load(source, f"{PHOTOS}1.png").images[:], pixels(1))
