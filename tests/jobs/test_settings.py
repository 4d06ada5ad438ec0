"""Settings come from the environment, and a child process reads the same ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.settings import Settings, SettingsError


def test_the_defaults_need_nothing_but_a_folder(tmp_path: Path) -> None:
    settings = Settings.from_env({"IWES_HOME": str(tmp_path)})
    assert settings.database_url == f"sqlite:///{tmp_path}/store.db"
    assert settings.redis_is_embedded
    assert settings.backend_url == "http://127.0.0.1:9090"


@pytest.mark.parametrize("redis", ["", "redis://elsewhere:6379/2"])
def test_a_child_reads_the_same_settings(tmp_path: Path, redis: str) -> None:
    given = {
        "IWES_HOME": str(tmp_path),
        "IWES_PORT": "9123",
        "REDIS_URL": redis,
        "IWES_IMAGE_PREFIXES": "https://images.example/a/, s3://bucket/photos/",
        "IWES_DEVICE": "cpu",
        "IWES_RECONCILE_SECONDS": "60",
        "IWES_CACHE": str(tmp_path / "fast"),
        "IWES_CACHE_GB": "1.5",
        "IWES_MODELS_GB": "2",
    }
    settings = Settings.from_env(given)
    assert settings.image_cache.parent == settings.features_folder.parent == tmp_path / "fast"
    assert settings.image_prefixes == ("https://images.example/a/", "s3://bucket/photos/")
    assert Settings.from_env(settings.as_env()) == settings


def test_the_socket_of_an_embedded_redis_is_short_however_long_the_home(tmp_path: Path) -> None:
    settings = Settings.from_env({"IWES_HOME": str(tmp_path / ("long" * 60))})
    assert len(settings.redis_url) < 100


def test_a_redis_address_that_is_none_is_named() -> None:
    with pytest.raises(SettingsError, match="REDIS_URL"):
        Settings.from_env({"REDIS_URL": "foo"})


@pytest.mark.parametrize("name", ["IWES_RECONCILE_SECONDS", "IWES_CACHE_GB", "IWES_MODELS_GB"])
@pytest.mark.parametrize("value", ["much", "0", "-1", "nan", "inf"])
def test_a_number_that_is_none_is_named(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"{name} is '{value}'"):
        Settings.from_env({name: value})


@pytest.mark.parametrize("port", ["web", "0", "70000", "-1"])
def test_a_port_that_is_none_is_named(port: str) -> None:
    with pytest.raises(SettingsError, match="IWES_PORT"):
        Settings.from_env({"IWES_PORT": port})
