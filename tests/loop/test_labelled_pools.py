"""A project that does not start empty, on real parts: 2,000 imported labels, a subset of 400, annotators besides."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import select

from backend.cli import cli
from backend.demo.label_config import label_config
from backend.embedded.label_studio import LabelStudio
from jobs.connect import Connected, Options, connect
from jobs.reconcile import reconcile_project
from jobs.settings import Settings
from jobs.status import project_status
from jobs.workplace import Workplace
from store import examples, pool, projects, rounds, subsets
from store.tables import Label, RoundState, Task
from tests.live import DIGITS, Pool, await_, choice, make_pool, state, write_digits

pytestmark = [pytest.mark.studio, pytest.mark.timeout(900)]

CAME, FREE, SIZE, K = 2000, 60, 400, 10
FIRST = 1000
"""The files of these tests come after those of others."""
WRONG = 5
"""Imported labels that are wrong: the next digit."""


@pytest.fixture(scope="module")
def many(studio: LabelStudio) -> dict[str, str]:
    return write_digits(studio.files_root / "digits", CAME + FREE, first=FIRST)


@pytest.fixture(scope="module")
def mixed(live: Workplace, studio: LabelStudio, many: dict[str, str]) -> tuple[Pool, Connected]:
    """The first 2,000 digits are imported with their labels, five of them wrong; sixty without."""
    names = list(many)
    wrong = {name: DIGITS[(int(many[name]) + 1) % 10] for name in names[:WRONG]}

    def annotations(name: str) -> list[dict[str, Any]]:
        return [] if name in names[CAME:] else [{"result": choice(wrong.get(name, many[name]))}]

    made = make_pool(studio, many, annotations=annotations)
    options = Options(k=K, seed_size=K, reserve=2.0, rng_seed=11)
    return made, connect(live, studio.url, studio.token, made.id, options)


@pytest.fixture(scope="module")
def selected(live: Workplace, backend_settings: Settings, mixed: tuple[Pool, Connected]) -> str:
    """What `iwes select` said when the subset was there."""
    made, _ = mixed
    words = ["select", "--url", made.studio.url, "--project", str(made.id), "--size", str(SIZE)]
    answer = CliRunner(env=backend_settings.as_env()).invoke(cli, [*words, "--seed", "100", "--k", "100"])
    assert answer.exit_code == 0, answer.output
    return answer.output


def test_connecting_finds_the_labelled_and_the_unlabelled_tasks(live: Workplace, mixed: tuple[Pool, Connected]) -> None:
    _, done = mixed
    assert (done.tasks, done.came_labelled) == (CAME + FREE, CAME)
    with live.store.read() as session:
        status = project_status(session, projects.by_id(session, done.project.id))
    assert status.drawn_by.endswith(f"IWeS-dis for {CAME} that came with a label")
    assert status.drawn_by.startswith("IWeS-ent for")


def test_annotators_are_asked_by_a_model_of_the_labels_that_were_there(
    live: Workplace, mixed: tuple[Pool, Connected]
) -> None:
    """Before anybody has labelled anything."""
    _, done = mixed
    await_(lambda: state(live, done.project) == (1, RoundState.OPEN), "a round drawn by a model")
    with live.store.read() as session:
        round_ = rounds.by_number(session, done.project, 1)
        assert round_.rule == "ent"
        assert str(round_.model_version).startswith("iwes-auto-")


def test_a_subset_of_400_is_selected_in_rounds_without_an_annotator(
    live: Workplace, mixed: tuple[Pool, Connected], selected: str
) -> None:
    _, done = mixed
    assert f"subset dis: {SIZE} tasks by IWeS-dis in 4 rounds" in selected
    assert "100% of the drawn weights are at their cap" in selected
    with live.store.read() as session:
        subset = subsets.by_name(session, done.project, "dis")
        assert subset is not None
        every = rounds.all_of(session, done.project, subset)
        assert [(r.rule, r.batch_size) for r in every] == [("seed", 100), ("dis", 100), ("dis", 100), ("dis", 100)]
        assert all(r.twins and r.f_trained_at and r.g_trained_at for r in every)
        assert subsets.selected(session, subset) == SIZE
        model = rounds.models(session, done.project, subset)[-1]
        asked = sum(
            e.draw is None or e.draw.round.subset_id is None for e in examples.of_project(session, done.project)
        )
        assert SIZE <= model.examples <= SIZE + asked


def test_weights_are_in_the_export_and_in_a_data_manager_tab_of_the_subset(
    live: Workplace, mixed: tuple[Pool, Connected], selected: str
) -> None:
    made, done = mixed
    with live.store.read() as session:
        subset = subsets.by_name(session, done.project, "dis")
        assert subset is not None
        expected = {
            d.task.studio_id: (d.round.number, d.weight, d.probability) for d in subsets.members(session, subset)
        }
    data = {task["id"]: task["data"] for task in made.exported()}
    found = {
        task_id: (d["al_round"], d["al_weight"], d["al_probability"])
        for task_id, d in data.items()
        if "dis" in str(d.get("al_subset", "")).split(", ")
    }
    assert found.keys() == expected.keys()
    for task_id, numbers in expected.items():
        assert found[task_id] == pytest.approx(numbers, abs=1e-6)
        assert data[task_id]["image"].startswith("/data/local-files/"), "what was there is there still"
    tabs = {tab["data"]["title"]: tab["id"] for tab in made.call("GET", f"/api/dm/views/?project={made.id}")}
    assert {"Default", "Importance weights", "Subset dis", "Labels worth a second look"} <= set(tabs)
    listed = made.call("GET", f"/api/tasks?view={tabs['Subset dis']}&page_size=1000&include=id,data")["tasks"]
    assert {task["id"] for task in listed} == set(expected)


def test_wrong_labels_come_first_among_those_worth_a_second_look(
    live: Workplace, mixed: tuple[Pool, Connected], selected: str
) -> None:
    made, _ = mixed
    tabs = {tab["data"]["title"]: tab["id"] for tab in made.call("GET", f"/api/dm/views/?project={made.id}")}
    view = tabs["Labels worth a second look"]
    listed = made.call("GET", f"/api/tasks?view={view}&page_size=500&include=id,data")["tasks"]
    order = [task["data"]["al_second_look"] for task in listed]
    assert order == sorted(order, reverse=True)
    wrong = set(made.task_ids[:WRONG])
    found = [rank for rank, task in enumerate(listed) if task["id"] in wrong]
    print(f"{len(listed)} labels worth a second look; the {WRONG} wrong ones stand at {found}")
    assert len(found) >= WRONG - 1
    assert all(task["data"]["al_suggested"] in DIGITS for task in listed)
    said = {task["id"]: task["data"]["al_label"] for task in listed}
    assert all(said[task["id"]] != made.class_of(task["data"]) for task in listed if task["id"] in wrong)


def test_a_prediction_for_a_labelled_task_tells_how_far_the_models_are_apart(
    live: Workplace, mixed: tuple[Pool, Connected], selected: str
) -> None:
    """Through Label Studio's own action, as a reviewer would."""
    made, _ = mixed
    some = made.task_ids[:4]
    made.call(
        "POST",
        f"/api/dm/actions?id=retrieve_tasks_predictions&project={made.id}",
        {"selectedItems": {"all": False, "included": some}, "project": made.id},
    )
    for task_id in some:
        predictions = made.call("GET", f"/api/predictions/?task={task_id}")
        (ours,) = [p for p in predictions if str(p["model_version"]).startswith("iwes-") and p["result"]]
        assert 0 <= ours["score"] <= 1 / 2.71828
        assert 0.1 <= ours["result"][0]["score"] <= 1
        assert ours["result"][0]["value"]["choices"][0] in DIGITS


def test_the_trigger_on_k_labels_still_works_for_the_unlabelled_tasks(
    live: Workplace, mixed: tuple[Pool, Connected], selected: str
) -> None:
    made, done = mixed
    number, _ = state(live, done.project)
    person = made.annotator()
    person.run(threading.Event(), limit=K)
    assert set(person.given) <= set(made.task_ids[CAME:]), "only what has no label is asked for"
    await_(lambda: state(live, done.project) == (number + 1, RoundState.OPEN), "the next round")
    with live.store.read() as session:
        (model,) = [m for m in rounds.models(session, done.project) if m.round_number == number]
        assert model.examples == SIZE + K, "the subset and what annotators have labelled train together"
        labels = session.scalars(select(Label).where(Label.project_id == done.project.id, ~Label.imported)).all()
        assert all(label.draw is not None and label.draw.round.subset_id is None for label in labels)


def test_odd_labels_are_handled_as_the_design_says(live: Workplace, studio: LabelStudio, many: dict[str, str]) -> None:
    """Annotators who disagree, names the config does not know, a second control, skips."""
    names = list(many)[:40]
    second = (
        '<Choices name="quality" toName="image" choice="single"><Choice value="good"/><Choice value="bad"/></Choices>'
    )
    config = label_config(DIGITS).replace("</View>", f"{second}</View>")

    def annotations(name: str) -> list[dict[str, Any]]:
        number = names.index(name)
        if number == 0:
            votes = [choice("1"), choice("7"), choice("7")]
            return [{"result": vote, "ground_truth": False} for vote in votes]
        if number == 1:
            return [
                {"result": choice("1"), "ground_truth": True},
                *({"result": choice("7"), "ground_truth": False},) * 2,
            ]
        if number == 2:
            return [{"result": choice("good", "quality")}]
        if number == 3:
            return [{"result": [], "was_cancelled": True}]
        return [{"result": choice(many[name]) + choice("good", "quality")}] if number < 30 else []

    made = make_pool(studio, dict.fromkeys(names, ""), config, annotations=annotations)
    done = connect(live, studio.url, studio.token, made.id, Options(k=4, seed_size=4, rng_seed=3))
    with live.store.read() as session:
        came = pool.labels_that_came(session, done.project)
        tasks = pool.by_studio_id(session, done.project, made.task_ids)
        found = {studio_id: came.get(task.id) for studio_id, task in tasks.items()}
        status = project_status(session, done.project)
    ids = made.task_ids
    assert [found[ids[n]] for n in range(4)] == ["7", "1", None, None]
    assert done.came_labelled == 28
    assert any("says nothing for <Choices name='label'>" in problem for problem in status.problems)


def test_tasks_imported_with_labels_after_connecting_are_found_and_deleted_ones_forgotten(
    live: Workplace, studio: LabelStudio, many: dict[str, str], new_pool: Callable[..., Pool]
) -> None:
    made = new_pool(size=12)
    done = connect(live, studio.url, studio.token, made.id, Options(k=4, seed_size=4, rng_seed=3))
    assert done.came_labelled == 0
    names = list(many)[:30]
    tasks = [
        {"data": {"image": f"/data/local-files/?d=digits/{name}"}, "annotations": [{"result": choice(many[name])}]}
        for name in names
    ]
    ids = made.add(tasks)
    reconcile_project(live, done.project.id)
    with live.store.read() as session:
        assert pool.came_labelled(session, done.project) == 30
        (subset,) = subsets.all_of(session, done.project)
        assert (subset.name, subset.auto) == ("auto", True)
    await_(lambda: _selected(live, subset.id) >= 4, "the first of them to be selected")
    with live.store.read() as session:
        member = subsets.members(session, subset)[0].task.studio_id
    assert member in ids
    made.call("DELETE", f"/api/tasks/{member}/")
    await_(lambda: _is_gone(live, done, member), "the webhook of the deletion")
    with live.store.read() as session:
        assert member not in {draw.task.studio_id for draw in subsets.members(session, subset)}
    await_(lambda: _selected(live, subset.id) >= 4, "another in its place")


def _selected(live: Workplace, subset_id: int) -> int:
    with live.store.read() as session:
        return subsets.selected(session, subsets.by_id(session, subset_id))


def _is_gone(live: Workplace, done: Connected, studio_id: int) -> bool:
    with live.store.read() as session:
        (task,) = session.scalars(select(Task).where(Task.project_id == done.project.id, Task.studio_id == studio_id))
        return task.gone
