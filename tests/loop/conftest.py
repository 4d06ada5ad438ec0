"""The whole stack for the tests here: one Label Studio and one backend for all of them, projects as needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backend.embedded.label_studio import LabelStudio
from backend.embedded.ports import any_free
from backend.embedded.process import Stack
from backend.up import start_backend
from jobs.settings import Settings
from jobs.workplace import Workplace, workplace
from tests.live import Pool, make_pool, write_digits

POOL_SIZE = 160


@pytest.fixture(scope="session")
def truth(studio: LabelStudio) -> dict[str, str]:
    return write_digits(studio.files_root / "digits", POOL_SIZE)


@pytest.fixture(scope="session")
def backend_settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    home: Path = tmp_path_factory.mktemp("backend")
    # On a busy machine a webhook may miss its one second; then reconcile finds the change before a test gives up.
    return Settings.from_env({"IWES_HOME": str(home), "IWES_PORT": str(any_free()), "IWES_RECONCILE_SECONDS": "60"})


@pytest.fixture(scope="session")
def live(backend_settings: Settings) -> Iterator[Workplace]:
    """A backend as `iwes up` starts it (Redis, gunicorn, an RQ worker), and our own look into its store."""
    with Stack() as stack:
        start_backend(stack, backend_settings)
        with workplace(backend_settings) as place:
            yield place
        for process in stack.processes:
            print(f"--- {process.name}\n{process.log_tail(40)}")


@pytest.fixture
def new_pool(studio: LabelStudio, truth: dict[str, str]) -> Callable[..., Pool]:
    """Makes a new project in Label Studio with the first `size` digits."""

    def make(size: int = POOL_SIZE, config: str | None = None) -> Pool:
        return make_pool(studio, dict(list(truth.items())[:size]), config)

    return make
