"""What goes wrong between backend and Label Studio: a real server behind a wire that can be cut or made to lie."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from rq.job import JobStatus
from sqlalchemy import func, select

from backend.demo.label_config import label_config
from jobs import queues
from jobs.connect import Options, connect
from jobs.reconcile import reconcile_project
from jobs.status import queue_status
from jobs.workplace import Workplace
from store import labels as labels_store
from store import rounds
from store.pool import size as pool_size
from store.tables import Draw, Label, Project, Round, RoundState
from studio.errors import NotFound
from tests.live import Pool, Wire, await_, drawn_tasks, drop_one_prediction, reached_through, state, stored

pytestmark = pytest.mark.studio


@pytest.fixture
def wire(studio: object) -> Iterator[Wire]:
    wire = Wire(studio.url)  # type: ignore[attr-defined]
    yield wire
    wire.close()


@pytest.fixture
def wired(live: Workplace, new_pool: Callable[..., Pool], wire: Wire) -> tuple[Pool, Project]:
    """A connected project whose Label Studio the backend reaches through the wire."""
    pool = new_pool(size=40)
    project = connect(live, pool.studio.url, pool.studio.token, pool.id, Options(k=6, seed_size=6)).project
    reached_through(live, project.id, wire.url)
    return pool, project


def test_fewer_queue_entries_stored_than_sent_switch_nothing_and_are_sent_again(
    live: Workplace, wired: tuple[Pool, Project], wire: Wire
) -> None:
    pool, project = wired
    wire.change = drop_one_prediction
    pool.annotator().run(threading.Event(), limit=6)
    await_(lambda: state(live, project) == (1, RoundState.DRAWN), "the draw")
    drawn = drawn_tasks(live, project, 1)
    job_id = f"project-{project.id}-round-1-publish"
    await_(lambda: "entries of the queue iwes-queue-1" in _reason(live, job_id), "publishing to fail and say why")
    assert versions(pool)["iwes-queue-1"] == len(drawn) - 1
    assert pool.settings()["model_version"] == "iwes-queue-0"
    wire.change = lambda method, path, body: body
    await_(lambda: state(live, project) == (1, RoundState.OPEN), "publishing to be tried again")
    assert pool.settings()["model_version"] == "iwes-queue-1"
    assert versions(pool)["iwes-queue-1"] == len(drawn)
    assert drawn_tasks(live, project, 1) == drawn


def test_label_studio_down_during_publish_resumes_the_round_and_draws_nothing_twice(
    live: Workplace, wired: tuple[Pool, Project], wire: Wire
) -> None:
    pool, project = wired

    def cut_at_the_switch(method: str, path: str, body: bytes) -> bytes:
        if method == "PATCH" and path == f"/api/projects/{pool.id}/":
            wire.cut.set()
        return body

    wire.change = cut_at_the_switch
    pool.annotator().run(threading.Event(), limit=6)
    await_(wire.cut.is_set, "publishing to be under way")
    drawn = drawn_tasks(live, project, 1)
    job_id = f"project-{project.id}-round-1-publish"
    await_(lambda: _status(live, job_id) == JobStatus.SCHEDULED, "the job to wait for its next try")
    assert state(live, project) == (1, RoundState.DRAWN)
    wire.change = lambda method, path, body: body
    wire.cut.clear()
    await_(lambda: state(live, project) == (1, RoundState.OPEN), "the round to resume")
    assert drawn_tasks(live, project, 1) == drawn
    with live.store.read() as session:
        assert len(rounds.all_of(session, project)) == 2
        per_task = session.execute(
            select(Draw.task_id, func.count()).join(Round).where(Round.project_id == project.id).group_by(Draw.task_id)
        )
        assert {count for _task, count in per_task} == {1}
    person = pool.annotator()
    person.run(threading.Event(), limit=3)
    assert person.given == drawn[:3]


def versions(pool: Pool) -> dict[str, int]:
    return dict(pool.call("GET", f"/api/projects/{pool.id}/model-versions/"))


def _reason(live: Workplace, job_id: str) -> str:
    return next((str(job.reason) for job in queue_status(live.redis).jobs if job.id == job_id), "")


def _status(live: Workplace, job_id: str) -> object:
    job = queues.find(live.redis, job_id)
    return job.get_status() if job else None


def test_a_drawn_task_deleted_in_label_studio_is_left_out_of_the_queue(
    live: Workplace, wired: tuple[Pool, Project], wire: Wire
) -> None:
    pool, project = wired
    wire.cut.set()
    pool.annotator().run(threading.Event(), limit=6)
    await_(lambda: state(live, project)[1] in (RoundState.CLOSED, RoundState.TRAINED, RoundState.DRAWN), "the close")
    wire.cut.clear()
    wire.change = lambda method, path, body: 503 if method == "PATCH" and path.startswith("/api/tasks/") else body
    await_(lambda: state(live, project) == (1, RoundState.DRAWN), "the draw")
    gone, *others = drawn_tasks(live, project, 1)
    pool.call("DELETE", f"/api/tasks/{gone}/")
    wire.change = lambda method, path, body: body
    await_(lambda: state(live, project) == (1, RoundState.OPEN), "publishing to be tried again")
    person = pool.annotator()
    person.run(threading.Event(), limit=2)
    assert person.given == others[:2]


def test_a_project_that_answers_404_is_not_taken_for_an_empty_one(
    live: Workplace, wired: tuple[Pool, Project], wire: Wire
) -> None:
    _pool, project = wired
    wire.change = lambda method, path, body: 404 if path.startswith("/api/tasks") else body
    with pytest.raises(NotFound):
        reconcile_project(live, project.id)
    with live.store.read() as session:
        assert pool_size(session, project) == 40


def test_a_class_added_later_brings_back_the_labels_that_named_it(
    live: Workplace, new_pool: Callable[..., Pool]
) -> None:
    pool = new_pool(size=20, config=label_config("01234567"))
    project = connect(live, pool.studio.url, pool.studio.token, pool.id, Options(k=4, seed_size=4)).project
    pool.call("PATCH", f"/api/projects/{pool.id}/", {"label_config": label_config("0123456789")})
    person = pool.annotator()
    person.truth = lambda data: "9"
    person.run(threading.Event(), limit=2)
    with live.store.read() as session:
        assert labels_store.problems(session, project) == {"unknown class '9': it is not in the labelling config": 2}
    found = reconcile_project(live, project.id)
    assert found["labelling config read again"] == 1
    with live.store.read() as session:
        assert labels_store.problems(session, project) == {}
        assert rounds.progress(session, rounds.by_number(session, project, 0)).labels == 2
    assert reconcile_project(live, project.id) == {}


def test_reconcile_finds_what_no_webhook_told(live: Workplace, new_pool: Callable[..., Pool]) -> None:
    pool = new_pool(size=30)
    project = connect(live, pool.studio.url, pool.studio.token, pool.id, Options(k=8, seed_size=8)).project
    pool.annotator().run(threading.Event(), limit=2)
    (webhook,) = pool.call("GET", f"/api/webhooks/?project={pool.id}")
    pool.call("PATCH", f"/api/webhooks/{webhook['id']}/", {"is_active": False})
    pool.annotator().run(threading.Event(), limit=3)
    exported = {a["id"]: t["id"] for t in pool.exported() for a in t["annotations"]}
    lost_label, lost_task = min(exported), next(t for t in pool.task_ids if t not in drawn_tasks(live, project, 0))
    pool.call("DELETE", f"/api/annotations/{lost_label}/")
    pool.call("DELETE", f"/api/tasks/{lost_task}/")
    pool.call("PATCH", f"/api/projects/{pool.id}/", {"sampling": "Sequential sampling"})

    found = reconcile_project(live, project.id)
    assert found == {
        "tasks deleted": 1,
        "labels missed": 3,
        "labels deleted": 1,
        "webhook restored": 1,
        "queue restored": 1,
    }
    assert reconcile_project(live, project.id) == {}
    with live.store.read() as session:
        live_labels = session.scalars(select(Label).where(Label.project_id == project.id, ~Label.deleted))
        assert {label.annotation_id for label in live_labels} == set(exported) - {lost_label}
    assert pool.settings()["sampling"] == "Uncertainty sampling"
    assert stored(live, project.id).reconciled_at is not None
    person = pool.annotator()
    person.run(threading.Event(), limit=1)
    assert person.given == [exported[lost_label]], "a task whose label was deleted is asked for again, in its place"
