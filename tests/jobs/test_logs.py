"""Logs that a person can read and `jq` can follow one project in, with a real work-horse and without secrets."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from jobs import logs, queues
from jobs.loop import due, reconcile_work
from jobs.queues import STUDIO, Work
from jobs.settings import Settings, SettingsError
from jobs.workplace import Workplace
from store import subsets
from store.database import Store
from store.tables import Mode
from tests.conftest import a_label, make_project, put_label

log = logging.getLogger("somebody.else")


@pytest.fixture(autouse=True)
def quiet_afterwards() -> Iterator[None]:
    """Takes back what `set_up` changes for the whole process."""
    root = logging.getLogger()
    handlers, level, hooks = list(root.handlers), root.level, (sys.excepthook, threading.excepthook)
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    sys.excepthook, threading.excepthook = hooks
    logging.captureWarnings(False)


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_line_says_who_said_what_when_and_what_it_is_about(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("json")
    with logs.about(project=3, round=2, subset=None):
        log.info("trained on %s “labels”", 50)
    log.warning("done")
    first, second = lines(capsys)
    assert datetime.fromisoformat(str(first.pop("time"))).utcoffset() == timedelta(0)
    assert first == {
        "level": "INFO",
        "logger": "somebody.else",
        "message": "trained on 50 “labels”",
        "project": 3,
        "round": 2,
        "process": os.getpid(),
    }
    assert "project" not in second


def test_text_is_one_line_that_grep_finds_by_project(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("text")
    with logs.about(project=3, job="project-3-reconcile"):
        log.info("nothing to repair")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("Z INFO somebody.else [project=3 job=project-3-reconcile] nothing to repair")


def test_an_exception_is_a_field_of_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("json")
    try:
        raise ValueError("no such label")
    except ValueError:
        log.exception("a request failed")
    (line,) = lines(capsys)
    assert line["message"] == "a request failed"
    assert str(line["exception"]).startswith("Traceback")
    assert str(line["exception"]).endswith("ValueError: no such label")


@pytest.mark.parametrize("form", ["text", "json"])
def test_nobody_can_forge_a_line(capsys: pytest.CaptureFixture[str], form: str) -> None:
    logs.set_up(form)
    log.info("no class %s", "cat\n2026-01-01T00:00:00Z ERROR jobs: all is lost\r2026 again")
    assert not [line for line in capsys.readouterr().err.splitlines()[1:] if not line.startswith("    ")]


def test_set_up_twice_says_everything_once(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("text")
    logs.set_up("json", logging.WARNING)
    log.info("unheard")
    log.warning("heard")
    assert [line["message"] for line in lines(capsys)] == ["heard"]


@pytest.mark.parametrize(
    "said",
    [
        "redis://user:HIDDEN@10.0.0.1:6379/0 does not answer",
        "401 for Authorization: Token HIDDEN0123456789abcdef",
        "{'Authorization': 'Bearer HIDDEN.abc-123_0123456789'}",
        "{'X-IWeS-Secret': 'HIDDEN', 'Accept': '*/*'}",
        '{"project": {"id": 1, "invite_token": "HIDDEN", "task_data_password": "HIDDEN"}}',
        "https://bucket.example/cat.png?X-Amz-Credential=HIDDEN&X-Amz-Signature=HIDDEN&part=1",
    ],
)
def test_what_looks_like_a_secret_is_left_out(capsys: pytest.CaptureFixture[str], said: str) -> None:
    logs.set_up("json")
    try:
        raise ValueError(said)
    except ValueError:
        log.exception("failed at %s", said)
    told = capsys.readouterr().err
    assert "HIDDEN" not in told
    assert "…" in told


def test_warnings_and_failed_threads_are_lines_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(False)
        logs.set_up("json")
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
    warned, failed = lines(capsys)
    assert "old" in str(warned["message"])
    assert str(failed["exception"]).endswith("ZeroDivisionError: division by zero")


def test_every_job_says_by_its_id_what_it_is_about(store: Store) -> None:
    project = make_project(store, tasks=8, mode=Mode.AUTO)
    for n in range(1, 5):
        put_label(store, project, n, a_label(n, imported=True))
    with store.write() as session:
        subsets.ask(session, project, name="my-first-set", rule="dis", size=4)
    with store.read() as session:
        works = [*due(session, project), reconcile_work(project)]
    found = {work.id: logs.of_job(work.id) for work in works}
    about = {"project": project.id, "subset": None, "round": 0}
    for work_id in (f"project-{project.id}-round-0-draw", f"project-{project.id}-my-first-set-round-0-select"):
        subset = "my-first-set" if "my-first-set" in work_id else None
        assert found[work_id] == {**about, "subset": subset, "job": work_id}
    last = f"project-{project.id}-reconcile"
    assert found[last] == {**about, "round": None, "job": last}
    assert logs.of_job("project-1-dis-round-12-train-g")["round"] == 12
    assert logs.of_job("somebody's own") == {"job": "somebody's own"}


@pytest.mark.slow
def test_a_worker_and_its_work_horse_say_which_job_they_speak_of(busy: Workplace, store: Store) -> None:
    """In a process of its own, as `iwes worker` starts it."""
    project = make_project(store, studio_url="http://127.0.0.1:1")
    ids = [f"project-{project.id}-round-{number}-publish" for number in (4, 5)]
    for number, name in ((4, "talk"), (5, "fail")):
        work = Work(ids[number - 4], f"tests.jobs.observed.{name}", (project.id, number), STUDIO, retries=())
        queues.ensure(busy.redis, work)
    environment = {**os.environ, **busy.settings.as_env(), "REDIS_URL": busy.settings.redis_url, "IWES_LOG": "json"}
    command = [sys.executable, "-c", "from backend.cli import main; main()", "worker", "--queue", "studio", "--burst"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    said = [json.loads(line) for line in done.stderr.splitlines()]
    assert done.stdout == ""
    (hello,) = [line for line in said if line["message"] == "hello from 4"]
    assert (hello["project"], hello["round"], hello["job"]) == (project.id, 4, ids[0])
    (failed,) = [line for line in said if line.get("job") == ids[1] and line["level"] == "ERROR"]
    assert failed["exception"].endswith("ValueError: round 5 cannot be done with token=…")
    assert {line["logger"] for line in said} >= {"rq.worker", "somebody.else"}


def test_the_form_of_logs_is_a_setting_that_children_inherit() -> None:
    chosen = Settings.from_env({"IWES_LOG": "json"})
    assert Settings.from_env(chosen.as_env()).log == "json"
    with pytest.raises(SettingsError, match="IWES_LOG is 'xml'; give one of text, json"):
        Settings.from_env({"IWES_LOG": "xml"})
