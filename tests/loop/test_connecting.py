"""Connecting a real Label Studio and undoing it: all or nothing, twice like once, one clear line for each mistake."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import func, select

from backend import cli
from backend.embedded.label_studio import LabelStudio
from jobs.connect import ConnectError, Options, connect
from jobs.settings import Settings
from jobs.workplace import Workplace
from store import projects
from store.tables import Draw, Project, Round, Task
from studio.errors import Forbidden, Refused, StudioError
from tests.live import Pool, Wire, drawn_tasks, label_studio, make_pool, reached_through, stored, write_digits

pytestmark = pytest.mark.studio

NOTHING = {"backends": 0, "webhooks": 0, "tabs": 0, "queues": 0}


def iwes(settings: Settings, *arguments: str, **environment: str) -> Result:
    """The `iwes` command as a person runs it, errors and exit code included."""
    import subprocess
    import sys

    run = subprocess.run(
        [sys.executable, "-c", "from backend.cli import main; main()", *arguments],
        env={**settings.as_env(), "PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        timeout=240,
    )
    return run  # type: ignore[return-value]


def rows(live: Workplace) -> list[int]:
    """What a connect that failed could leave behind; the rounds of connected projects go on meanwhile."""
    with live.store.read() as session:
        half_made = select(Round.id).join(Project, Round.project_id == Project.id).where(~Project.connected)
        of_them = select(func.count()).where
        wanted = [select(func.count()).select_from(table) for table in (Project, Task)]
        wanted += [of_them(Round.id.in_(half_made)), of_them(Draw.round_id.in_(half_made))]
        return [session.scalar(count) or 0 for count in wanted]


def test_connect_status_disconnect_from_the_command_line(
    live: Workplace, backend_settings: Settings, new_pool: Callable[..., Pool]
) -> None:
    pool = new_pool(size=30)
    before = pool.settings()
    where = ("--url", pool.studio.url, "--project", str(pool.id))
    options = ("--token", pool.studio.token, "--k", "6", "--seed", "6", "--rule", "margin")

    first = iwes(backend_settings, "connect", *where, *options)
    assert first.returncode == 0, first.stderr
    assert "connected: 30 tasks" in first.stdout
    assert pool.made_by_connect() == {"backends": 1, "webhooks": 1, "tabs": 2, "queues": 1}
    (webhook,) = pool.call("GET", f"/api/webhooks/?project={pool.id}")
    with live.store.read() as session:
        project = projects.by_address(session, pool.studio.url, pool.id)
        assert project is not None
    assert (project.k, project.seed_size, project.rule) == (6, 6, "margin")
    assert webhook["headers"] == {"X-IWeS-Secret": project.secret}
    assert pool.settings()["sampling"] == "Uncertainty sampling"
    assert pool.settings()["model_version"] == "iwes-queue-0"

    there, here = pool.settings(), rows(live)
    second = iwes(backend_settings, "connect", *where, *options)
    assert second.returncode == 0
    assert "connected already; nothing was changed" in second.stdout
    assert pool.settings() == there
    assert rows(live) == here
    assert pool.made_by_connect() == {"backends": 1, "webhooks": 1, "tabs": 2, "queues": 1}

    pool.annotator().run(threading.Event(), limit=2)
    status = iwes(backend_settings, "status", COLUMNS="160")
    assert status.returncode == 0, status.stderr
    assert f"{pool.studio.url}/projects/{pool.id}/data" in status.stdout
    assert "4 labels until the next training" in status.stdout
    assert "2 workers alive" in status.stdout
    assert "2 of 6" in status.stdout

    assert iwes(backend_settings, "disconnect", *where).returncode == 0
    assert pool.made_by_connect() == NOTHING
    for name in ("sampling", "maximum_annotations"):
        assert pool.settings()[name] == before[name]
    again = iwes(backend_settings, "disconnect", *where)
    assert again.returncode == 1
    assert "is not connected" in again.stderr


def test_connecting_again_after_disconnecting_goes_on_with_the_same_round(
    live: Workplace, new_pool: Callable[..., Pool]
) -> None:
    from jobs.connect import disconnect

    pool = new_pool(size=30)
    options = Options(k=6, seed_size=6)
    project = connect(live, pool.studio.url, pool.studio.token, pool.id, options).project
    person = pool.annotator()
    person.run(threading.Event(), limit=2)
    drawn = rows(live)
    disconnect(live, stored(live, project.id))
    connect(live, pool.studio.url, pool.studio.token, pool.id, options)
    assert rows(live) == drawn
    person.run(threading.Event(), limit=2)
    assert person.given == drawn_tasks(live, project, 0)[:4]


def test_a_queue_left_by_a_store_that_is_no_more_is_not_taken_for_ours(
    live: Workplace, new_pool: Callable[..., Pool]
) -> None:
    pool = new_pool(size=30)
    stale = [{"task": t, "result": [], "score": 0.5, "model_version": "iwes-queue-0"} for t in pool.task_ids[:9]]
    pool.call("POST", f"/api/projects/{pool.id}/import/predictions", stale)
    project = connect(live, pool.studio.url, pool.studio.token, pool.id, Options(k=6, seed_size=6)).project
    person = pool.annotator()
    person.run(threading.Event(), limit=4)
    assert person.given == drawn_tasks(live, project, 0)[:4]


def test_disconnecting_that_was_cut_off_can_be_repeated(
    live: Workplace, backend_settings: Settings, new_pool: Callable[..., Pool]
) -> None:
    pool = new_pool(size=8)
    project = connect(live, pool.studio.url, pool.studio.token, pool.id, Options(k=4, seed_size=4)).project
    wire = Wire(pool.studio.url)
    reached_through(live, project.id, wire.url)
    where = ("--url", wire.url, "--project", str(pool.id))
    wire.cut.set()
    first = iwes(backend_settings, "disconnect", *where)
    assert first.returncode == 1
    assert "no answer from Label Studio" in first.stderr
    wire.cut.clear()
    second = iwes(backend_settings, "disconnect", *where)
    wire.close()
    assert second.returncode == 0, second.stderr
    assert pool.made_by_connect() == NOTHING


def test_images_that_cannot_be_read_are_found_out_before_anybody_labels(
    live: Workplace, new_pool: Callable[..., Pool]
) -> None:
    pool = new_pool(size=3)
    for task in pool.task_ids:
        pool.call("PATCH", f"/api/tasks/{task}/", {"data": {"image": "https://elsewhere.test/x.png"}})
    before = rows(live)
    with pytest.raises(ConnectError, match=r"no image can be read.*not on the connected Label Studio"):
        connect(live, pool.studio.url, pool.studio.token, pool.id, Options())
    assert rows(live) == before
    assert pool.made_by_connect() == NOTHING


def test_a_personal_access_token_works_where_legacy_tokens_are_switched_off(
    live: Workplace, new_pool: Callable[..., Pool]
) -> None:
    pool = new_pool(size=12)
    token = pool.call("POST", "/api/token/")["token"]
    tokens = "/api/jwt/settings"
    session = pool.session
    pool.call("POST", tokens, {"api_tokens_enabled": True, "legacy_api_tokens_enabled": False})
    try:
        with pytest.raises(StudioError, match="API Tokens Settings"):
            connect(live, pool.studio.url, pool.studio.token, pool.id, Options(k=4, seed_size=4))
        done = connect(live, pool.studio.url, token, pool.id, Options(k=4, seed_size=4))
    finally:
        access = session.post(f"{pool.studio.url}/api/token/refresh/", json={"refresh": token}, timeout=30).json()[
            "access"
        ]
        session.headers["Authorization"] = f"Bearer {access}"
        settings = {"api_tokens_enabled": True, "legacy_api_tokens_enabled": True}
        session.post(pool.studio.url + tokens, json=settings, timeout=30).raise_for_status()
    assert done.tasks == 12
    assert pool.settings()["model_version"] == "iwes-queue-0"


def test_tasks_labelled_before_connecting_are_not_asked_for_again_and_can_be_selected(
    live: Workplace, new_pool: Callable[..., Pool]
) -> None:
    from sqlalchemy import select as select_

    from store.tables import Label

    pool = new_pool(size=12)
    pool.annotator().run(threading.Event(), limit=5)
    done = connect(live, pool.studio.url, pool.studio.token, pool.id, Options(k=4, seed_size=4, reserve=0.0))
    assert done.labelled == 5
    with live.store.read() as session:
        labels = list(session.scalars(select_(Label).where(Label.project_id == done.project.id)))
        asked = select_(Draw).join(Round).where(Round.project_id == done.project.id, Round.subset_id.is_(None))
        drawn = {draw.task_id for draw in session.scalars(asked)}
    assert all(label.draw_id is None and label.imported for label in labels)
    assert not drawn & {label.task_id for label in labels}
    assert done.came_labelled == 5


MISTAKES = {
    "wrong address": ("no answer from Label Studio", {"--url": "http://127.0.0.1:1"}),
    "no address": ("not a web address", {"--url": "nowhere"}),
    "wrong token": ("refuses the token", {"--token": "0" * 40}),
    "empty token": ("empty or holds blanks", {"--token": " "}),
    "unknown project": ("there is no project 99999", {"--project": "99999"}),
    "cap below one": ("--cap must be at least 1", {"--cap": "0.5"}),
    "unknown network": ("unknown network 'alexnett' (did you mean 'alexnet'?)", {"--network": "alexnett"}),
    "unknown way": ("--train must be one of auto, full, head", {"--train": "half"}),
    "no rate": ("--learning-rate is 'fast'; give a number, or 'choose'", {"--learning-rate": "fast"}),
    "backend elsewhere": ("this backend does not answer at", {"--backend-url": "http://127.0.0.1:1"}),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_is_one_clear_line_and_leaves_nothing_behind(
    live: Workplace, backend_settings: Settings, new_pool: Callable[..., Pool], mistake: str
) -> None:
    said, change = MISTAKES[mistake]
    pool = new_pool(size=3)
    before = rows(live)
    right = {"--url": pool.studio.url, "--token": pool.studio.token, "--project": str(pool.id)}
    arguments = [part for pair in (right | change).items() for part in pair]
    run = iwes(backend_settings, "connect", *arguments)
    assert run.returncode == 1
    assert said in run.stderr
    assert len(run.stderr.strip().splitlines()) == 1, run.stderr
    assert rows(live) == before
    assert pool.made_by_connect() == NOTHING


def test_a_config_without_a_supported_control_is_refused(
    live: Workplace, backend_settings: Settings, new_pool: Callable[..., Pool]
) -> None:
    boxes = (
        '<View><Image name="image" value="$image"/><RectangleLabels name="box" toName="image">'
        '<Label value="car"/></RectangleLabels></View>'
    )
    pool = new_pool(size=3, config=boxes)
    before = rows(live)
    where = ("--url", pool.studio.url, "--project", str(pool.id), "--token", pool.studio.token)
    run = iwes(backend_settings, "connect", *where)
    assert run.returncode == 1
    assert "<RectangleLabels>" in run.stderr
    assert len(run.stderr.strip().splitlines()) == 1
    assert rows(live) == before
    assert pool.made_by_connect() == NOTHING


@pytest.mark.parametrize(
    "environment",
    [
        {"USE_DEFAULT_BANNED_SUBNETS": "true"},
        {"USE_DEFAULT_BANNED_SUBNETS": "true", "ML_BLOCK_LOCAL_IP": "false"},
    ],
    ids=["the defaults", "only the ML block lifted: 403, yet Label Studio stores the row"],
)
def test_a_label_studio_that_refuses_private_addresses_is_explained(
    live: Workplace, tmp_path: Path, environment: dict[str, str]
) -> None:
    with label_studio(tmp_path, **environment) as strict:
        pool = make_pool(strict, write_digits(strict.files_root / "digits", 3))
        before = rows(live)
        with pytest.raises(Forbidden, match="USE_DEFAULT_BANNED_SUBNETS=false"):
            connect(live, strict.url, strict.token, pool.id, Options())
        assert rows(live) == before
        assert pool.made_by_connect() == NOTHING


def test_a_host_name_without_a_dot_is_explained(
    live: Workplace, studio: LabelStudio, new_pool: Callable[..., Pool]
) -> None:
    from studio.client import Client
    from studio.connection import set_webhook
    from studio.projects import StudioProject

    pool = new_pool(size=3)
    with pytest.raises(Refused, match="host name without a dot"):
        set_webhook(StudioProject(Client(studio.url, studio.token), pool.id), "http://ml-backend:9090", "s")
    assert pool.made_by_connect() == NOTHING


@pytest.mark.parametrize("step", ["/api/webhooks/", "/api/dm/views/", "/import/predictions"])
def test_a_refusal_at_any_step_takes_everything_back(live: Workplace, new_pool: Callable[..., Pool], step: str) -> None:
    """A member without the permission for one step: Community knows no such member, so the wire refuses instead."""
    pool = new_pool(size=8)
    before, settings = rows(live), pool.settings()
    wire = Wire(pool.studio.url)
    wire.change = lambda method, path, body: 403 if method in ("POST", "PATCH") and step in path else body
    try:
        with pytest.raises(Forbidden):
            connect(live, wire.url, pool.studio.token, pool.id, Options(k=4, seed_size=4))
    finally:
        wire.close()
    assert rows(live) == before
    assert pool.made_by_connect() == NOTHING
    assert pool.settings()["sampling"] == settings["sampling"]
    assert not pool.settings()["model_version"]


def test_help_names_every_command() -> None:
    said = CliRunner().invoke(cli.cli, ["--help"]).output
    for command in ("up", "serve", "worker", "connect", "disconnect", "reconcile", "status"):
        assert f"  {command} " in said
