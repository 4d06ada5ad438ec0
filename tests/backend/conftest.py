from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from backend.app import create_app
from jobs.settings import Settings


@pytest.fixture
def client(settings: Settings) -> FlaskClient:
    from dataclasses import replace

    return create_app(replace(settings, redis_url="redis://127.0.0.1:1")).test_client()
