"""Reconciling by itself, with no worker that could do it first: each difference is made by hand, found and repaired."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
from sqlalchemy import select, update

from backend.embedded.label_studio import LabelStudio
from backend.embedded.ports import any_free
from backend.embedded.process import Process, Stack
from backend.embedded.redis import start_redis
from jobs.connect import Options, connect
from jobs.reconcile import reconcile_project
from jobs.settings import Settings
from jobs.workplace import Workplace, workplace
from store import pool as pools
from store.tables import Label, Project
from tests.live import Pool, Wire, choice, drawn_tasks, make_pool, reached_through

pytestmark = pytest.mark.studio

SIZE = 30


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workplace]:
    """A backend that only takes in: Redis and the web server, no worker."""
    home: Path = tmp_path_factory.mktemp("still")
    settings = Settings.from_env({"IWES_HOME": str(home), "IWES_PORT": str(any_free())})
    serve = [sys.executable, "-c", "from backend.cli import main; main()", "serve"]
    with Stack() as stack:
        start_redis(stack, settings)
        web = stack.start(Process("serve", serve, home / "serve.log", {**os.environ, **settings.as_env()}))
        web.wait_until(lambda: _answers(settings), 60, "it answered")
        with workplace(settings) as place:
            yield place


def _answers(settings: Settings) -> bool:
    try:
        return requests.get(f"{settings.backend_url}/health", timeout=1).ok
    except requests.RequestException:
        return False


Connected = tuple[Pool, Project]


@pytest.fixture
def connected(still: Workplace, new_pool: Callable[..., Pool]) -> Connected:
    """A project whose seed round is served, and of whose changes no webhook tells."""
    pool = new_pool(size=SIZE)
    options = Options(k=8, seed_size=8, rng_seed=5)
    project = connect(still, pool.studio.url, pool.studio.token, pool.id, options).project
    assert reconcile_project(still, project.id) == {}, "right after connecting there is nothing to repair"
    return pool, project


def _silence(pool: Pool) -> None:
    (webhook,) = pool.call("GET", f"/api/webhooks/?project={pool.id}")
    pool.call("PATCH", f"/api/webhooks/{webhook['id']}/", {"is_active": False})


def _only(found: dict[str, int]) -> dict[str, int]:
    """Without the webhook that these tests switch off to keep Label Studio quiet."""
    return {kind: count for kind, count in found.items() if kind != "webhook restored"}


def _agree(place: Workplace, pool: Pool, project: Project) -> None:
    """Label Studio and the store hold the same tasks and the same annotations, and a second look finds nothing."""
    assert reconcile_project(place, project.id) == {}
    held = {a["id"]: (t["id"], a["was_cancelled"]) for t in pool.exported() for a in t["annotations"]}
    with place.store.read() as session:
        rows = session.scalars(select(Label).where(Label.project_id == project.id, ~Label.deleted))
        assert {row.annotation_id: (row.task.studio_id, row.skipped) for row in rows} == held
        there = pool.call("GET", f"/api/tasks?project={pool.id}&page=1&page_size=9999&include=id")["tasks"]
        assert pools.known_ids(session, project) == {task["id"] for task in there}


def _annotate(pool: Pool, task_id: int, digit: str = "7", **more: Any) -> int:
    body = {"result": choice(digit), "lead_time": 1.0, **more}
    return int(pool.call("POST", f"/api/tasks/{task_id}/annotations/", body)["id"])


def test_labels_made_changed_deleted_and_turned_into_drafts(still: Workplace, connected: Connected) -> None:
    pool, project = connected
    first, second, third, fourth = drawn_tasks(still, project, 0)[:4]
    kept, deleted, drafted = (_annotate(pool, task) for task in (first, second, third))
    _silence(pool)
    pool.call("PATCH", f"/api/annotations/{kept}/", {"result": choice("3")})
    pool.call("DELETE", f"/api/annotations/{deleted}/")
    pool.call("POST", f"/api/annotations/{drafted}/convert-to-draft")
    _annotate(pool, fourth)
    _annotate(pool, second, was_cancelled=True)
    found = reconcile_project(still, project.id)
    assert _only(found) == {"labels missed": 2, "labels changed": 1, "labels deleted": 2}
    _agree(still, pool, project)
    with still.store.read() as session:
        label = session.scalars(select(Label).where(Label.annotation_id == kept, Label.project_id == project.id)).one()
        assert label.class_name == "3"


def test_tasks_added_deleted_and_imported_with_annotations(still: Workplace, connected: Connected) -> None:
    pool, project = connected
    undrawn = [task for task in pool.task_ids if task not in drawn_tasks(still, project, 0)]
    _silence(pool)
    image = "/data/local-files/?d=digits/0000.png"
    pool.add([{"data": {"image": image}}] * 3)
    pool.add([{"data": {"image": image}, "annotations": [{"result": choice("4")}]}] * 2)
    pool.call("DELETE", f"/api/tasks/{undrawn[0]}/")
    body = {"selectedItems": {"all": False, "included": undrawn[1:4]}}
    pool.call("POST", f"/api/dm/actions?id=delete_tasks&project={pool.id}", body)
    found = reconcile_project(still, project.id)
    assert _only(found) == {"tasks added": 5, "labels missed": 2, "tasks deleted": 4}
    _agree(still, pool, project)
    with still.store.read() as session:
        assert pools.came_labelled(session, project) == 2


def test_queue_entries_missing_and_doubled(still: Workplace, connected: Connected) -> None:
    pool, project = connected
    name, drawn = "iwes-queue-0", drawn_tasks(still, project, 0)
    entries = _entries(pool, name)
    assert sorted(entries) == sorted(drawn)
    for task in drawn[:2]:
        pool.call("DELETE", f"/api/predictions/{entries[task][0]}/")
    doubled = {"task": drawn[3], "result": [], "score": 0.01, "model_version": name}
    pool.call("POST", f"/api/projects/{pool.id}/import/predictions", [doubled])
    assert reconcile_project(still, project.id) == {"queue entries restored": 3}
    assert {task: len(ids) for task, ids in _entries(pool, name).items()} == dict.fromkeys(drawn, 1)
    person = pool.annotator()
    person.run(threading.Event(), limit=5)
    assert person.given == drawn[:5], "repaired entries stand where they stood"
    _agree(still, pool, project)


def _entries(pool: Pool, name: str) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for task in pool.call("GET", f"/api/tasks?project={pool.id}&page=1&page_size=1000&fields=all")["tasks"]:
        ids = [p["id"] for p in task["predictions"] if p["model_version"] == name]
        if ids:
            found[task["id"]] = ids
    return found


@pytest.mark.parametrize(
    "change",
    [
        {"sampling": "Sequential sampling"},
        {"model_version": ""},
        {"show_collab_predictions": False},
        {"sampling": "Uniform sampling", "model_version": ""},
    ],
    ids=lambda change: "+".join(change),
)
def test_the_projects_settings_changed_by_hand(
    still: Workplace, connected: Connected, change: dict[str, object]
) -> None:
    pool, project = connected
    pool.call("PATCH", f"/api/projects/{pool.id}/", change)
    assert reconcile_project(still, project.id) == {"queue restored": 1}
    settings = pool.settings()
    assert (settings["model_version"], settings["sampling"]) == ("iwes-queue-0", "Uncertainty sampling")
    _agree(still, pool, project)


def test_more_annotations_a_task_are_taken_back(still: Workplace, connected: Connected) -> None:
    pool, project = connected
    pool.call("PATCH", f"/api/projects/{pool.id}/", {"maximum_annotations": 3})
    assert reconcile_project(still, project.id) == {"annotations per task restored": 1}
    assert pool.settings()["maximum_annotations"] == 1


def test_webhook_and_backend_changed_by_hand(still: Workplace, connected: Connected) -> None:
    pool, project = connected
    (webhook,) = pool.call("GET", f"/api/webhooks/?project={pool.id}")
    row = f"/api/webhooks/{webhook['id']}/"
    for change in (
        {"headers": {}},
        {"is_active": False},
        {"send_payload": False},
        {"send_for_all_actions": False, "actions": ["TASKS_CREATED"]},
    ):
        pool.call("PATCH", row, change)
        assert reconcile_project(still, project.id) == {"webhook restored": 1}, change
        assert reconcile_project(still, project.id) == {}, change
    pool.call("DELETE", row)
    (backend,) = pool.call("GET", f"/api/ml?project={pool.id}")
    pool.call("DELETE", f"/api/ml/{backend['id']}")
    assert reconcile_project(still, project.id) == {"webhook restored": 1, "ML backend restored": 1}
    _agree(still, pool, project)


def test_overwritten_weights_of_a_labelled_task_are_written_again_and_of_an_open_one_later(
    still: Workplace, connected: Connected
) -> None:
    pool, project = connected
    labelled, waiting = drawn_tasks(still, project, 0)[:2]
    _annotate(pool, labelled)
    right = pool.call("GET", f"/api/tasks/{labelled}/")["data"]
    assert right["al_weight"] == 1.0
    for task in (labelled, waiting):
        data = pool.call("GET", f"/api/tasks/{task}/")["data"]
        pool.call("PATCH", f"/api/tasks/{task}/", {"data": {"image": data["image"], "al_weight": 99}})
    assert reconcile_project(still, project.id) == {"weights restored": 1}
    assert pool.call("GET", f"/api/tasks/{labelled}/")["data"] == right
    assert pool.call("GET", f"/api/tasks/{waiting}/")["data"]["al_weight"] == 99
    _annotate(pool, waiting)
    assert reconcile_project(still, project.id) == {"weights restored": 1}
    assert pool.call("GET", f"/api/tasks/{waiting}/")["data"]["al_weight"] == 1.0
    _agree(still, pool, project)


def test_a_label_whose_task_has_lost_count_of_it_is_found(still: Workplace, connected: Connected) -> None:
    """A task whose data are written during a submit can end with no annotations counted although it has one."""
    pool, project = connected
    task = drawn_tasks(still, project, 0)[0]
    annotation = _annotate(pool, task)
    with still.store.write() as session:  # as if its webhook had been lost
        session.execute(update(Label).where(Label.annotation_id == annotation).values(deleted=True))
    _lose_count(pool.studio, task)
    assert reconcile_project(still, project.id) == {"labels missed": 1}
    _agree(still, pool, project)


def _lose_count(studio: LabelStudio, task: int) -> None:
    """In Label Studio's own database, as the race leaves it behind: the race itself cannot be had at will."""
    with sqlite3.connect(studio.data / "label_studio.sqlite3", timeout=30) as database:
        database.execute("UPDATE task SET total_annotations = 0, is_labeled = 0 WHERE id = ?", (task,))


def test_what_is_read_follows_what_changed_not_the_size_of_the_project(
    still: Workplace, studio: LabelStudio, truth: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.reconcile.OVERLAP", timedelta())  # else the import below would be read once more
    pool = make_pool(studio, truth)
    extra = [{"data": {"image": "/data/local-files/?d=digits/0000.png"}}] * 1500
    pool.add(extra)
    time.sleep(1.1)  # Label Studio tells its time in whole seconds
    project = connect(still, pool.studio.url, pool.studio.token, pool.id, Options(k=8, seed_size=8)).project
    wire = Wire(studio.url)
    try:
        reached_through(still, project.id, wire.url)
        time.sleep(1.1)  # what was written in the second of a reconcile is read by the next one as well
        reconcile_project(still, project.id)  # reads the tasks that connecting wrote weights to
        assert _requests(still, project, wire) == (1, 1), "nothing changed: an empty page, and one count of the whole"
        _silence(pool)
        pool.annotator().run(threading.Event(), limit=1)
        assert _requests(still, project, wire) == (2, 1), "one label: its task, its annotations, and one count"
        time.sleep(1.1)
        _silence(pool)
        pool.call("DELETE", f"/api/tasks/{pool.task_ids[70]}/")
        pages, counts = _requests(still, project, wire)
        assert pages <= 5, "one task deleted: the small range it was in"
        assert 4 <= counts <= 12, "halving 1,660 tasks down to 200"
        _agree(still, pool, project)
    finally:
        wire.close()


def _requests(place: Workplace, project: Project, wire: Wire) -> tuple[int, int]:
    """How often one reconcile asked for tasks, and how often only for their number."""
    wire.seen.clear()
    reconcile_project(place, project.id)
    asked = [line for line in wire.seen if line.startswith("GET /api/tasks?")]
    counts = [line for line in asked if "page_size=1&" in line]
    return len(asked) - len(counts), len(counts)
