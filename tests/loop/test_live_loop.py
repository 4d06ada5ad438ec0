"""The live loop on real parts: Label Studio, Redis, RQ workers, gunicorn, and annotators who use the editor's calls."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
import requests
from sqlalchemy import select
from sqlalchemy.orm import Session

import iwes
from backend.demo.annotator import IDLE_SECONDS, Annotator
from backend.demo.label_config import label_config
from backend.demo.members import sign_up
from backend.exports.export import export
from backend.exports.wish import Format, Wish
from jobs import queues, versions
from jobs.connect import Connected, Options, connect
from jobs.reconcile import reconcile_project
from jobs.workplace import Workplace
from models import card as cards
from store import rounds
from store.tables import Draw, Label, Model, Project, RoundState
from tests.live import DIGITS, Pool, at_rest, await_, drawn_tasks, state

pytestmark = pytest.mark.studio

ROUNDS = 3


def connected(live: Workplace, pool: Pool, **options: object) -> Connected:
    return connect(live, pool.studio.url, pool.studio.token, pool.id, Options(**options))  # type: ignore[arg-type]


def _labels(session: Session, project: Project) -> list[Label]:
    return list(session.scalars(select(Label).where(Label.project_id == project.id)))


class Breaks:
    """Past the end of its queue Label Studio serves tasks at random. On a machine so busy that a training outlasts the
    reserve, people take a break before that."""

    def __init__(self, live: Workplace, project: Project) -> None:
        self._live, self._project = live, project
        self.taken = 0

    def __call__(self) -> bool:
        with self._live.store.read() as session:
            last = rounds.all_of(session, self._project)[-1]
            if last.state == RoundState.DRAWN and last.number:
                last = rounds.by_number(session, self._project, last.number - 1)
            labelled = {label.task_id for label in _labels(session, self._project)}
            enough = sum(draw.task_id not in labelled for draw in last.draws) > 4
        self.taken += not enough
        return enough


@pytest.fixture(scope="module")
def finished(live: Workplace, studio: object, truth: dict[str, str]) -> tuple[Pool, Project, list[Annotator]]:
    """Two annotators have labelled until the seed round and three drawn ones were trained."""
    from tests.live import make_pool

    pool = make_pool(studio, truth)  # type: ignore[arg-type]
    project = connected(live, pool, k=10, seed_size=10, reserve=2.0, rng_seed=5).project
    second = sign_up(pool.studio.url, pool.session, "colleague@example.com", "colleague-password-1")
    people = [pool.annotator(delay=1.0), pool.annotator(second, delay=1.0)]
    for person in people:
        person.ready = Breaks(live, project)
    stop = threading.Event()
    threads = [person.run_in_thread(stop) for person in people]
    await_(
        lambda: state(live, project) >= (ROUNDS, RoundState.TRAINED) or not any(t.is_alive() for t in threads), "rounds"
    )
    stop.set()
    for thread in threads:
        thread.join(30)
    assert [person.failure for person in people] == [None, None]
    await_(lambda: state(live, project) == (ROUNDS + 1, RoundState.OPEN), "the last queue")
    # Label Studio gives a webhook one second, once; on a busy machine one may be lost, and this is what finds it.
    print(f"reconcile repaired: {reconcile_project(live, project.id)}")
    return pool, project, people


def test_both_annotators_get_exactly_the_drawn_tasks_in_order(
    live: Workplace, finished: tuple[Pool, Project, list[Annotator]]
) -> None:
    _pool, project, people = finished
    with live.store.read() as session:
        labels = sorted(_labels(session, project), key=lambda label: label.created_at)
        served = [(label.annotator, label.draw.round.number, label.draw.rank) for label in labels if label.draw]
        wanted = {round_.number: round_.wanted for round_ in rounds.all_of(session, project)}
        labelled = {label.task.studio_id for label in labels}
    assert len(served) == len(labels), "a task nobody drew was served"
    assert labelled == {task for person in people for task in person.given}
    for number in range(ROUNDS + 1):
        ranks = sorted({rank for _who, round_number, rank in served if round_number == number})
        assert ranks == list(range(len(ranks))), "a task was passed over"
        assert len(ranks) >= wanted[number]
    assert len({who for who, _number, _rank in served}) == 2
    for annotator in {who for who, _number, _rank in served}:
        order = [(number, rank) for who, number, rank in served if who == annotator]
        assert order == sorted(set(order)), "tasks came out of order"


def test_every_label_belongs_to_exactly_one_draw(
    live: Workplace, finished: tuple[Pool, Project, list[Annotator]]
) -> None:
    pool, project, _people = finished
    with live.store.read() as session:
        labels = _labels(session, project)
        assert all(label.draw is not None and label.draw.task_id == label.task_id for label in labels)
        in_store = {(label.annotation_id, label.task.studio_id, label.class_name) for label in labels}
    in_studio = {
        (annotation["id"], task["id"], annotation["result"][0]["value"]["choices"][0])
        for task in pool.exported()
        for annotation in task["annotations"]
    }
    assert in_store == in_studio
    assert all(
        pool.class_of(task["data"]) == task["annotations"][0]["result"][0]["value"]["choices"][0]
        for task in pool.exported()
    )


def test_labels_that_arrive_while_a_model_trains_count_for_the_next_round(
    live: Workplace, finished: tuple[Pool, Project, list[Annotator]]
) -> None:
    _pool, project, _people = finished
    late = 0
    with live.store.read() as session:
        for round_ in rounds.all_of(session, project)[:ROUNDS]:
            assert round_.closed_at is not None
            assert round_.trained_at is not None
            for label in session.scalars(select(Label).join(Draw).where(Draw.round_id == round_.id)):
                if label.created_at > round_.closed_at:
                    late += 1
                    assert label.round_number == round_.number + 1
        models = {
            m.round_number: m.examples for m in session.scalars(select(Model).where(Model.project_id == project.id))
        }
        seen_by = [(label.round_number, label.task_id) for label in _labels(session, project)]
    assert late > 0, "no label arrived during a training; the test shows nothing"
    for number, examples in models.items():
        # By task: two requests in one instant may hand out the same one, and two annotations make one example.
        assert examples == len({task for round_number, task in seen_by if (round_number or 0) <= number})


def test_annotators_go_on_while_a_model_trains(
    live: Workplace, finished: tuple[Pool, Project, list[Annotator]]
) -> None:
    """From each round's last label to the next queue somebody submitted, and nobody was left without a task."""
    _pool, project, people = finished
    with live.store.read() as session:
        labels = _labels(session, project)
        for round_, following in itertools.pairwise(rounds.all_of(session, project)[: ROUNDS + 1]):
            assert round_.closed_at is not None
            assert following.opened_at is not None
            during = [label for label in labels if round_.closed_at < label.created_at < following.opened_at]
            assert during, f"nobody could label between round {round_.number} and the next"
    slowest = max(max(person.next_seconds + person.submit_seconds) for person in people)
    breaks = [cast(Breaks, person.ready).taken for person in people]
    print(f"slowest annotator request: {slowest:.2f} s; breaks: {breaks}")
    assert [person.idle_seconds for person in people] == [count * IDLE_SECONDS for count in breaks]


def test_weights_are_in_label_studios_own_export_and_data_manager(
    live: Workplace, finished: tuple[Pool, Project, list[Annotator]]
) -> None:
    pool, project, _people = finished
    with live.store.read() as session:
        labels = session.scalars(select(Label).where(Label.project_id == project.id))
        expected = {
            label.task.studio_id: (
                label.draw.round.number,
                label.draw.weight,
                label.draw.probability,
                label.draw.inclusion,
            )
            for label in labels
            if label.draw is not None
        }
    exported = {task["id"]: task["data"] for task in pool.exported()}
    assert exported.keys() == expected.keys()
    for task_id, (number, weight, probability, inclusion) in expected.items():
        data = exported[task_id]
        assert data["al_round"] == number
        assert data["al_weight"] == pytest.approx(weight, abs=1e-6)
        assert data["al_probability"] == pytest.approx(probability, abs=1e-6)
        assert data["al_inclusion"] == pytest.approx(inclusion, abs=1e-6)
    columns = {c["id"] for c in pool.call("GET", f"/api/dm/columns?project={pool.id}")["columns"]}
    assert {"al_round", "al_weight", "al_probability", "al_inclusion"} <= columns
    tabs = {tab["data"]["title"]: tab["id"] for tab in pool.call("GET", f"/api/dm/views/?project={pool.id}")}
    assert set(tabs) == {"Default", "Importance weights"}
    listed = pool.call("GET", f"/api/tasks?view={tabs['Importance weights']}&page_size=500&include=id,data")["tasks"]
    weights = [task["data"]["al_weight"] for task in listed]
    assert len(weights) >= len(expected)
    assert weights == sorted(weights, reverse=True)


def test_our_exports_agree_with_label_studios_own_and_can_be_imported_there_again(
    live: Workplace, finished: tuple[Pool, Project, list[Annotator]], tmp_path: Path
) -> None:
    pool, project, _people = finished
    theirs = {task["id"]: task for task in pool.exported()}
    export(live, project.id, Wish(Format.LABEL_STUDIO), tmp_path / "set.json")
    ours = json.loads((tmp_path / "set.json").read_text())
    assert {task["id"] for task in ours} == theirs.keys()
    for task in ours:
        same = theirs[task["id"]]
        for name in ("al_round", "al_weight", "al_probability", "al_inclusion"):
            assert task["data"][name] == pytest.approx(same["data"][name], abs=1e-6)
        assert task["data"]["image"] == same["data"]["image"]
        assert _choice(task) == _choice(same)
    body = {"title": "again", "label_config": label_config(DIGITS)}
    again = replace(pool, id=pool.call("POST", "/api/projects/", body)["id"])
    again.add(ours)
    imported = {task["data"]["image"]: task for task in again.exported()}
    assert {image: _choice(task) for image, task in imported.items()} == {
        task["data"]["image"]: _choice(task) for task in ours
    }
    assert all(imported[task["data"]["image"]]["data"] == task["data"] for task in ours)


def test_images_are_exported_from_label_studio_with_their_own_bytes(
    live: Workplace, finished: tuple[Pool, Project, list[Annotator]], tmp_path: Path
) -> None:
    pool, project, _people = finished
    export(live, project.id, Wish(Format.IMAGEFOLDER), tmp_path / "set")
    loaded = iwes.load_training_set(tmp_path / "set")
    assert len(loaded) == len(pool.exported())
    for path, address, name in zip(loaded.images, loaded.columns["image"], loaded.columns["class"], strict=True):
        assert path.parent.name == name == pool.truth[address.rpartition("/")[2]]
        assert path.read_bytes() == (pool.studio.files_root / "digits" / address.rpartition("/")[2]).read_bytes()


def _choice(task: Mapping[str, Any]) -> str:
    return str(task["annotations"][0]["result"][0]["value"]["choices"][0])


def test_drawn_probabilities_come_from_the_model_of_the_round_before(
    live: Workplace, finished: tuple[Pool, Project, list[Annotator]]
) -> None:
    _pool, project, _people = finished
    with live.store.read() as session:
        for round_ in rounds.all_of(session, project):
            assert round_.model_version == (f"iwes-model-{round_.number - 1}" if round_.number else None)
            for draw in round_.draws:
                assert 0.05 <= draw.probability <= 1
                assert draw.inclusion >= draw.probability - 1e-12 or draw.reserve or draw.passes > 0
                if round_.number:
                    assert draw.weight == pytest.approx(min(1 / draw.probability, 2.0))


def test_one_annotator_gets_a_published_round_in_its_order(live: Workplace, new_pool: Callable[..., Pool]) -> None:
    pool = new_pool(size=40)
    project = connected(live, pool, k=8, seed_size=8, reserve=0.5).project
    expected = drawn_tasks(live, project, 0)
    person = pool.annotator()
    person.run(threading.Event(), limit=8)
    assert person.given == expected[:8]
    await_(lambda: state(live, project) == (1, RoundState.OPEN), "the next queue")
    person.run(threading.Event(), limit=4)
    assert person.given[8:] == drawn_tasks(live, project, 1)[:4]


def test_a_task_opened_before_the_queue_was_switched_can_still_be_submitted(
    live: Workplace, new_pool: Callable[..., Pool]
) -> None:
    """The editor submits the id of the prediction a task was opened with; that prediction must outlive the switch."""
    pool = new_pool(size=40)
    project = connected(live, pool, k=6, seed_size=6).project
    slow, quick = (
        pool.annotator(sign_up(pool.studio.url, pool.session, "slow@example.com", "slow-password-1")),
        pool.annotator(),
    )
    held = slow.next_task()
    assert held is not None
    assert held["predictions"][0]["model_version"] == "iwes-queue-0"
    quick.run(threading.Event(), limit=6)
    await_(lambda: state(live, project) == (1, RoundState.OPEN), "the next queue")
    slow.submit(held, pool.class_of(held["data"]), datetime.now(UTC))
    with live.store.read() as session:
        (label,) = [label for label in _labels(session, project) if label.task.studio_id == held["id"]]
        assert label.draw is not None
        assert (label.draw.round.number, label.round_number) == (0, 1)
    quick.run(threading.Event(), limit=6)
    await_(lambda: state(live, project) == (2, RoundState.OPEN), "the queue after it")
    queues = pool.call("GET", f"/api/projects/{pool.id}/model-versions/")
    assert set(queues) == {"iwes-queue-1", "iwes-queue-2"}


def test_start_training_in_label_studio_retrains_at_once(live: Workplace, new_pool: Callable[..., Pool]) -> None:
    pool = new_pool(size=40)
    done = connected(live, pool, k=20, seed_size=20)
    pool.annotator().run(threading.Event(), limit=5)
    (backend,) = pool.call("GET", f"/api/ml?project={pool.id}")
    pool.call("POST", f"/api/ml/{backend['id']}/train")
    await_(lambda: state(live, done.project) == (1, RoundState.OPEN), "the next queue")
    with live.store.read() as session:
        (model,) = rounds.models(session, done.project)
        assert model.examples == 5
    row = pool.call("GET", f"/api/ml/{backend['id']}")
    assert row["model_version"] == "iwes-model-0"


def test_a_project_is_labelled_to_its_last_task_and_goes_on_when_tasks_are_added(
    live: Workplace, new_pool: Callable[..., Pool]
) -> None:
    pool = new_pool(size=14)
    project = connected(live, pool, k=4, seed_size=4).project
    person = pool.annotator()
    stop = threading.Event()
    labelling = person.run_in_thread(stop)
    await_(lambda: person.idle_seconds > 0 and len(set(person.given)) == 14, "the pool's end")
    await_(lambda: at_rest(live, project), "the last training")
    stop.set()
    labelling.join(30)  # or the added task might be labelled before it is drawn
    with live.store.read() as session:
        labels = list(session.scalars(select(Label).where(Label.project_id == project.id, ~Label.deleted)))
    assert len({label.task_id for label in labels}) == 14
    name = next(iter(pool.truth))
    last = state(live, project)[0]
    pool.add([{"data": {"image": f"/data/local-files/?d=digits/{name}"}}])
    await_(lambda: state(live, project) == (last + 1, RoundState.OPEN), "a round for the new task")


def test_a_head_on_a_pretrained_backbone_goes_round_and_answers(live: Workplace, new_pool: Callable[..., Pool]) -> None:
    pool = new_pool(size=24)
    project = connected(live, pool, k=4, seed_size=10, network="efficientnet-lite0", rule="margin").project
    pool.annotator().run(threading.Event(), limit=10)  # no more: while the head trains, the pool would be used up
    await_(lambda: state(live, project) >= (1, RoundState.OPEN), "a round drawn by the head")
    with live.store.read() as session:
        first = rounds.models(session, project)[0]
        drawn = rounds.by_number(session, project, 1)
        assert (drawn.rule, drawn.model_version) == ("margin", first.version)
    assert cards.read(versions.folder(live.settings, project, first.version)).way == "head"
    job = queues.find(live.redis, f"project-{project.id}-round-0-train")
    assert job is not None
    told = job.meta["progress"]
    assert 1 <= told["epoch"] <= told["of"]
    assert told["loss"] < 0.5
    tasks = [{"id": 1, "data": {"image": f"/data/local-files/?d=digits/{name}"}} for name in list(pool.truth)[:5]]
    asked = {"tasks": tasks, "project": f"{pool.id}.1"}
    answer = requests.post(f"{project.backend_url}/predict", json=asked, auth=("iwes", project.secret), timeout=60)
    results = answer.json()["results"]
    with live.store.read() as session:
        versions_now = {model.version for model in rounds.models(session, project)}
    assert len(results) == 5
    assert {result["model_version"] for result in results} <= versions_now
    assert all(0.1 <= result["score"] <= 1 and result["result"] for result in results)
