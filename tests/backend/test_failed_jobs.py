"""`iwes status` says why a job failed, whichever way it did, after real runs on a real Redis."""

from __future__ import annotations

import pytest
from rich.console import Console

from backend.status_page import show
from jobs import queues
from jobs.queues import STUDIO, Work
from jobs.status import queue_status
from jobs.worker import run
from jobs.workplace import Workplace
from store.database import Store
from tests.conftest import make_project


@pytest.fixture
def project_id(store: Store, busy: Workplace, monkeypatch: pytest.MonkeyPatch) -> int:
    """One whose jobs, which read the environment, find this test's store and Redis."""
    for name, value in {**busy.settings.as_env(), "REDIS_URL": busy.settings.redis_url}.items():
        monkeypatch.setenv(name, value)
    return make_project(store, studio_url="http://127.0.0.1:1").id


def page_after(busy: Workplace, function: str, project_id: int, retries: tuple[int, ...] = ()) -> str:
    job = f"tests.jobs.observed.{function}"
    queues.ensure(busy.redis, Work("project-1-round-7-publish", job, (project_id, 7), STUDIO, retries=retries))
    run(busy.settings, [STUDIO], burst=True)
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    show([], queue_status(busy.redis), console)
    return console.export_text()


def test_a_job_that_failed_for_good_shows_its_reason_without_secrets(busy: Workplace, project_id: int) -> None:
    page = page_after(busy, "fail", project_id)
    assert "project-1-round-7-publish: failed\n    ValueError: round 7 cannot be done with token=…\n" in page


def test_a_job_that_is_to_be_retried_shows_what_it_waits_for(busy: Workplace, project_id: int) -> None:
    page = page_after(busy, "fail", project_id, retries=(600,))
    assert "project-1-round-7-publish: to be retried\n    ValueError: round 7 cannot be done with token=…\n" in page


def test_a_job_whose_process_was_killed_shows_by_what(busy: Workplace, project_id: int) -> None:
    page = page_after(busy, "kill_itself", project_id)
    assert "project-1-round-7-publish: failed\n    its process was ended by SIGKILL" in page
