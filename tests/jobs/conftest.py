"""A real Redis for the tests here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.embedded.process import Stack
from backend.embedded.redis import start_redis
from jobs.settings import Settings
from jobs.workplace import Workplace
from store.database import Store


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home: Path = tmp_path_factory.mktemp("redis")
    settings = Settings.from_env({"IWES_HOME": str(home)})
    with Stack() as stack:
        start_redis(stack, settings)
        yield settings.redis_url


@pytest.fixture
def busy(redis_url: str, settings: Settings, store: Store) -> Workplace:
    """A workplace with a Redis that answers, empty."""
    from dataclasses import replace

    place = Workplace(replace(settings, redis_url=redis_url), store)
    place.redis.flushall()
    return place
