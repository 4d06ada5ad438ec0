from __future__ import annotations

from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient

from backend.app import create_app
from jobs.settings import Settings
from jobs.workplace import Workplace
from store.database import Store
from tests.backend.command import Iwes
from tests.backend.door import Door
from tests.jobs.conftest import busy, redis_url

__all__ = ["busy", "redis_url"]


@pytest.fixture
def client(settings: Settings) -> FlaskClient:
    from dataclasses import replace

    return create_app(replace(settings, redis_url="redis://127.0.0.1:1")).test_client()


@pytest.fixture
def door(client: FlaskClient, store: Store) -> Iterator[Door]:
    watched = Door(client.application, store)
    yield watched
    watched.close()


@pytest.fixture
def iwes(place: Workplace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iwes:
    return Iwes(place, monkeypatch, capsys)
