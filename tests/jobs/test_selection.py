"""Rounds without annotators: drawn from tasks that came with a label, trained by two models, until a subset is full."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import select

import iwes
from jobs import versions
from jobs.draw import draw_round
from jobs.loop import due
from jobs.queues import Work
from jobs.review import review_subset
from jobs.select import select_round
from jobs.status import project_status
from jobs.train import train_round
from jobs.workplace import Workplace
from models import card as cards
from models import checkpoint
from store import pool, projects, rounds, subsets
from store.database import Store
from store.tables import Label, Mode, Project, RoundState, Subset, Task
from tests.conftest import a_label, make_project, put_label
from tests.files import Files, picture

pytestmark = pytest.mark.slow

NAMES = ["dark", "light"]
COUNT = 40
WRONG = 8
"""A task that came with the wrong label."""
FREE = [*range(31, COUNT + 1)]
"""Tasks that came without one."""


@pytest.fixture
def files() -> Iterator[Files]:
    with Files() as files:
        files.held = {f"/data/{n}.png": picture(28, shade=90 if n % 2 else 160, noise=n) for n in range(1, COUNT + 1)}
        yield files


def truth(n: int) -> str:
    return NAMES[0] if n % 2 else NAMES[1]


@pytest.fixture
def mixed(store: Store, files: Files) -> Project:
    """Thirty tasks that came with a label, one of them wrong, and ten that did not."""
    project = make_project(store, tasks=COUNT, studio_url=files.url, classes=NAMES)
    for n in set(range(1, COUNT + 1)) - set(FREE):
        said = NAMES[1 - NAMES.index(truth(n))] if n == WRONG else truth(n)
        put_label(store, project, n, a_label(n, said, imported=True))
    return project


def ask(store: Store, project: Project, size: int = 16, rule: str = "dis", **wishes: object) -> Subset:
    with store.write() as session:
        wishes = {"seed_size": 8, "k": 4, "name": rule, "rule": rule, "size": size} | wishes
        return subsets.ask(session, projects.lock(session, project.id), **wishes)  # type: ignore[arg-type]


def works_due(place: Workplace, project: Project) -> list[Work]:
    with place.store.read() as session:
        return due(session, projects.by_id(session, project.id))


def run(place: Workplace, work: Work) -> None:
    """What a worker does with it, in this process."""
    module = importlib.import_module(work.function.rpartition(".")[0])
    kind = work.function.rpartition(".")[2]
    does = {"select": "select_round", "train": "train_round", "review": "review_subset", "draw": "draw_round"}[kind]
    getattr(module, does)(place, *work.arguments)


def run_until_shown(place: Workplace, project: Project, *, steps: int = 60) -> list[str]:
    """All steps of subsets until only Label Studio is left to be told; returns their names in order."""
    done: list[str] = []
    for _ in range(steps):
        mine = [
            work for work in works_due(place, project) if _is_of_a_subset(work) and work.function != "jobs.show.show"
        ]
        if not mine:
            return done
        for work in mine:
            run(place, work)
            done.append(work.id.removeprefix(f"project-{project.id}-"))
    raise AssertionError(f"not done after {steps} steps: {done}")


def _is_of_a_subset(work: Work) -> bool:
    return work.id.split("-")[2] != "round"


def test_a_subset_is_selected_in_rounds_of_two_models_without_any_annotator(
    place: Workplace, store: Store, mixed: Project
) -> None:
    subset = ask(store, mixed, size=16)
    done = run_until_shown(place, mixed)
    assert done == [
        *("dis-round-0-select", "dis-round-0-train-f", "dis-round-0-train-g"),
        *("dis-round-1-select", "dis-round-1-train-f", "dis-round-1-train-g"),
        *("dis-round-2-select", "dis-round-2-train-f", "dis-round-2-train-g"),
        "dis-round-2-review",
    ]
    with store.read() as session:
        assert subsets.selected(session, subset) == 16
        every = rounds.all_of(session, mixed, subset)
        assert [(r.rule, r.batch_size, r.model_version, r.state) for r in every] == [
            ("seed", 8, None, RoundState.TRAINED),
            ("dis", 4, "iwes-dis-0", RoundState.TRAINED),
            ("dis", 4, "iwes-dis-1", RoundState.TRAINED),
        ]
        draws = [draw for round_ in every for draw in round_.draws]
        assert len({draw.task_id for draw in draws}) == 16, "no task twice"
        free = {task.id for task in pool.by_studio_id(session, mixed, FREE).values()}
        assert not free & {draw.task_id for draw in draws}
        assert all(draw.weight == 1.0 for draw in every[0].draws)
        for draw in every[1].draws + every[2].draws:
            assert 0.05 <= draw.probability <= max(1 / np.e, 0.05 * 2) + 1e-12
            assert draw.weight == 2.0, "−x ln x is at most 1/e, so with a cap of 2 every weight is 2"
        f, g = rounds.current_pair(session, mixed, subset)
        assert f is not None
        assert g is not None
        assert (f.version, f.examples, g.version, g.examples) == ("iwes-dis-2", 16, "iwes-dis-2-g", 16)
        current = rounds.current_model(session, mixed)
        assert current is not None
        assert current.version == "iwes-dis-2", "the last f is the project's model"


@pytest.mark.slow
def test_f_and_g_differ_by_their_seed_alone(place: Workplace, store: Store, mixed: Project) -> None:
    ask(store, mixed, size=8)
    run_until_shown(place, mixed)
    f, g = (cards.read(versions.folder(place.settings, mixed, v)) for v in ("iwes-dis-0", "iwes-dis-0-g"))
    assert f.seed != g.seed
    assert (f.training_set, f.classes, f.network, f.way) == (g.training_set, g.classes, g.network, g.way)
    rates = f.metrics["learning_rate"], g.metrics["learning_rate"]
    assert rates[0] == rates[1]


@pytest.mark.slow
def test_scores_are_the_disagreement_about_the_label_and_the_draw_is_repeatable(
    place: Workplace, store: Store, mixed: Project
) -> None:
    subset = ask(store, mixed, size=12)
    select_round(place, mixed.id, subset.id, 0)
    for twin in (0, 1):
        train_round(place, mixed.id, 0, subset.id, twin)
    select_round(place, mixed.id, subset.id, 1)
    from jobs.rows import RowSource

    f, g = (
        checkpoint.load(versions.folder(place.settings, mixed, v), place.workshop)
        for v in ("iwes-dis-0", "iwes-dis-0-g")
    )
    with store.read() as session:
        round_ = rounds.by_number(session, mixed, 1, subset)
        tasks = [draw.task for draw in round_.draws]
        said = [NAMES.index(pool.labels_that_came(session, mixed)[task.id]) for task in tasks]
        rows = RowSource(place, mixed, f.learner).load([task.data for task in tasks]).rows
    expected = iwes.disagreement(f.probabilities(rows), g.probabilities(rows), np.array(said))
    assert [draw.score for draw in round_.draws] == pytest.approx(expected.tolist(), abs=1e-6)
    assert [draw.predicted for draw in round_.draws] == [NAMES[i] for i in f.probabilities(rows).argmax(axis=1)]
    first = [(draw.task_id, draw.probability) for draw in round_.draws]
    with store.write() as session:
        again = rounds.by_number(session, mixed, 1, subset)
        for draw in list(again.draws):
            session.delete(draw)
        session.flush()
        session.delete(again)
    select_round(place, mixed.id, subset.id, 1)
    with store.read() as session:
        second = rounds.by_number(session, mixed, 1, subset).draws
    assert [(draw.task_id, draw.probability) for draw in second] == first


@pytest.mark.slow
def test_by_loss_one_model_is_enough(place: Workplace, store: Store, mixed: Project) -> None:
    ask(store, mixed, size=12, rule="loss")
    done = run_until_shown(place, mixed)
    assert "loss-round-1-train-f" in done
    assert not any(name.endswith("-g") for name in done)
    with store.read() as session:
        (subset,) = subsets.all_of(session, mixed)
        assert [r.rule for r in rounds.all_of(session, mixed, subset)] == ["seed", "loss"]


def test_a_g_that_failed_is_due_again_alone(place: Workplace, store: Store, mixed: Project) -> None:
    subset = ask(store, mixed, size=12)
    select_round(place, mixed.id, subset.id, 0)
    train_round(place, mixed.id, 0, subset.id, 0)
    names = [w.id.rpartition("-")[2] for w in works_due(place, mixed) if w.function == "jobs.train.train"]
    assert names == ["g"], "f is done; only g is tried again"
    train_round(place, mixed.id, 0, subset.id, 0)
    with store.read() as session:
        assert len(rounds.models(session, mixed, subset)) == 1, "an f that runs again adds nothing"


def test_where_a_rate_is_chosen_g_takes_the_one_that_f_chose(place: Workplace, store: Store, mixed: Project) -> None:
    with store.write() as session:
        projects.lock(session, mixed.id).training = {"learning_rate": "choose"}
    subset = ask(store, mixed, size=12)
    select_round(place, mixed.id, subset.id, 0)
    assert [w.id[-1] for w in works_due(place, mixed) if w.function == "jobs.train.train"] == ["f"]


@pytest.mark.slow
def test_tasks_deleted_during_the_selection_are_replaced(place: Workplace, store: Store, mixed: Project) -> None:
    subset = ask(store, mixed, size=12)
    select_round(place, mixed.id, subset.id, 0)
    with store.write() as session:
        gone = [draw.task.studio_id for draw in subsets.members(session, subset)][:3]
        pool.forget(session, projects.lock(session, mixed.id), gone)
    run_until_shown(place, mixed)
    with store.read() as session:
        assert subsets.selected(session, subset) == 12
        members = {draw.task.studio_id for draw in subsets.members(session, subset)}
    assert len(members) == 12
    assert not members & set(gone)


@pytest.mark.slow
def test_an_image_that_cannot_be_read_is_set_aside_and_replaced(
    place: Workplace, store: Store, mixed: Project, files: Files
) -> None:
    for n in (1, 2, 3, 4):
        files.held[f"/data/{n}.png"] = b"<html>log in</html>"
    subset = ask(store, mixed, size=12)
    run_until_shown(place, mixed)
    with store.read() as session:
        assert subsets.selected(session, subset) == 12
        set_aside = set(session.scalars(select(Task.studio_id).where(Task.problem.is_not(None))))
    assert set_aside <= {1, 2, 3, 4}
    assert set_aside


@pytest.mark.slow
def test_a_pool_smaller_than_asked_for_is_taken_whole_and_ends(place: Workplace, store: Store, mixed: Project) -> None:
    subset = ask(store, mixed, size=30, seed_size=20, k=20)
    with store.write() as session:
        pool.forget(session, projects.lock(session, mixed.id), [1, 2])
    run_until_shown(place, mixed)
    with store.read() as session:
        assert subsets.selected(session, subset) == 28
        last = rounds.latest(session, mixed, subset)
        assert last is not None
        assert {draw.inclusion for draw in last.draws} == {1.0}


@pytest.mark.slow
def test_a_wrong_label_is_worth_a_second_look(place: Workplace, store: Store, mixed: Project) -> None:
    subset = ask(store, mixed, size=16)
    run_until_shown(place, mixed)
    with store.read() as session:
        doubts = subsets.doubts(session, subset)
        assert [doubt.task.studio_id for doubt in doubts][:1] == [WRONG]
        assert (doubts[0].class_name, doubts[0].suggested) == (NAMES[0], NAMES[1])
        assert 0.5 < doubts[0].improbability <= 1.0
        assert 0.0 <= doubts[0].disagreement <= 1 / np.e


@pytest.mark.slow
def test_a_doubt_that_is_no_more_is_withdrawn(place: Workplace, store: Store, mixed: Project) -> None:
    subset = ask(store, mixed, size=12)
    run_until_shown(place, mixed)
    put_label(store, mixed, WRONG, a_label(WRONG, truth(WRONG), minutes=60))
    review_subset(place, mixed.id, subset.id)
    with store.read() as session:
        assert WRONG not in [doubt.task.studio_id for doubt in subsets.doubts(session, subset)]
        assert WRONG in [doubt.task.studio_id for doubt in subsets.doubts(session, subset, withdrawn=True)]


@pytest.mark.slow
def test_a_larger_size_goes_on_where_the_smaller_one_ended(place: Workplace, store: Store, mixed: Project) -> None:
    subset = ask(store, mixed, size=8)
    run_until_shown(place, mixed)
    with store.write() as session:
        subsets.published(session, subsets.by_id(session, subset.id), 0)
    assert [w for w in works_due(place, mixed) if "-dis-" in w.id] == []
    ask(store, mixed, size=12)
    assert run_until_shown(place, mixed)[0] == "dis-round-1-select"
    with store.read() as session:
        assert subsets.selected(session, subset) == 12


@pytest.mark.slow
def test_in_a_mixed_project_both_kinds_train_together_and_annotators_are_asked_by_that_model(
    place: Workplace, store: Store, mixed: Project
) -> None:
    with store.write() as session:
        begun = subsets.begin_if_mixed(session, projects.lock(session, mixed.id))
        assert begun is not None
    run_until_shown(place, mixed)
    draw_round(place, mixed.id, 0)
    with store.write() as session:
        asked = rounds.latest(session, mixed)
        assert asked is not None
        assert (asked.rule, asked.model_version) == ("ent", "iwes-auto-0"), "from the first minute"
        rounds.open_(session, asked)
        answers = [draw.task.studio_id for draw in asked.draws][:4]
    assert set(answers) <= set(FREE)
    for n in answers:
        put_label(store, mixed, n, a_label(n, truth(n), minutes=3))
    train_round(place, mixed.id, 0)
    with store.read() as session:
        model = rounds.current_model(session, mixed)
        assert model is not None
        assert (model.version, model.examples) == ("iwes-model-0", 4 + 4), "four selected and four labelled"
        assert subsets.target(session, mixed, begun) == 4 + 4, "the next round takes from both kinds"


def test_each_mode_draws_from_its_own_kind_of_tasks(place: Workplace, store: Store, mixed: Project) -> None:
    ask(store, mixed, size=12)

    def functions(mode: Mode) -> set[str]:
        with store.write() as session:
            projects.change_mode(session, mixed.id, mode)
        return {work.function for work in works_due(place, mixed)}

    assert functions(Mode.AUTO) == {"jobs.draw.draw", "jobs.select.select"}
    assert functions(Mode.ENT) == {"jobs.draw.draw"}
    assert functions(Mode.DIS) == {"jobs.select.select"}
    with store.read() as session:
        status = project_status(session, projects.by_id(session, mixed.id))
    assert (status.mode, status.drawn_by) == ("dis", "IWeS-dis for 30 that came with a label")


@pytest.mark.slow
def test_when_the_last_unlabelled_task_is_labelled_the_rule_switches_by_itself(
    place: Workplace, store: Store, mixed: Project
) -> None:
    with store.write() as session:
        begun = subsets.begin_if_mixed(session, projects.lock(session, mixed.id))
        assert begun is not None
        begun.size = 12
    run_until_shown(place, mixed)
    with store.read() as session:
        assert subsets.selected(session, begun) == 4, "it keeps pace with the annotators"
        drawn_by = project_status(session, projects.by_id(session, mixed.id)).drawn_by
    assert drawn_by == "IWeS-ent for 10 unlabelled tasks, IWeS-dis for 30 that came with a label"
    for n in FREE:
        put_label(store, mixed, n, a_label(n, truth(n), minutes=3))
    run_until_shown(place, mixed)
    with store.read() as session:
        assert subsets.selected(session, begun) == 12, "nobody is left to keep pace with"
        drawn_by = project_status(session, projects.by_id(session, mixed.id)).drawn_by
    assert drawn_by == "IWeS-dis for 30 that came with a label"


def test_f_and_g_train_on_the_same_labels_although_annotators_go_on_in_between(
    place: Workplace, store: Store, mixed: Project
) -> None:
    subset = ask(store, mixed, size=8)
    select_round(place, mixed.id, subset.id, 0)
    train_round(place, mixed.id, 0, subset.id, 0)
    for n in FREE[:3]:
        put_label(store, mixed, n, a_label(n, truth(n), minutes=3))
    train_round(place, mixed.id, 0, subset.id, 1)
    f, g = (cards.read(versions.folder(place.settings, mixed, v)) for v in ("iwes-dis-0", "iwes-dis-0-g"))
    assert f.training_set == g.training_set


@pytest.mark.slow
def test_classes_that_are_renamed_during_the_selection_do_not_stop_it(
    place: Workplace, store: Store, mixed: Project
) -> None:
    subset = ask(store, mixed, size=16)
    select_round(place, mixed.id, subset.id, 0)
    for twin in (0, 1):
        train_round(place, mixed.id, 0, subset.id, twin)
    with store.write() as session:
        project = projects.lock(session, mixed.id)
        project.classes = ["night", "day"]
        for label in session.scalars(select(Label).where(Label.project_id == project.id)):
            label.class_name = "night" if label.class_name == NAMES[0] else "day"
    run_until_shown(place, mixed)
    with store.read() as session:
        assert [r.rule for r in rounds.all_of(session, mixed, subset)] == ["seed", "seed", "dis"]
        assert subsets.selected(session, subset) == 16


@pytest.mark.slow
def test_no_training_prunes_what_its_twin_has_just_saved(place: Workplace, store: Store, mixed: Project) -> None:
    tiny = Workplace(replace(place.settings, models_gigabytes=1e-6), store)
    subset = ask(store, mixed, size=16)
    run_until_shown(tiny, mixed)
    with store.read() as session:
        assert subsets.selected(session, subset) == 16
    for version in ("iwes-dis-0", "iwes-dis-2", "iwes-dis-2-g"):
        checkpoint.load(versions.folder(place.settings, mixed, version), place.workshop)


def test_a_prediction_for_a_labelled_task_reports_the_disagreement_once_there_is_a_g(
    place: Workplace, store: Store, mixed: Project
) -> None:
    from backend.predictors import Predictors

    subset = ask(store, mixed, size=8)
    select_round(place, mixed.id, subset.id, 0)
    train_round(place, mixed.id, 0, subset.id, 0)
    predictors = Predictors(place)
    tasks = [{"id": n, "data": {"image": f"/data/{n}.png"}} for n in (1, 2, FREE[0])]
    before = predictors.of(mixed, "iwes-dis-0").predict(tasks)
    assert all(answer["score"] == answer["result"][0]["score"] >= 0.5 for answer in before)
    train_round(place, mixed.id, 0, subset.id, 1)
    after = predictors.of(mixed, "iwes-dis-0").predict(tasks)
    assert [answer["result"] for answer in after] == [answer["result"] for answer in before]
    assert all(answer["score"] <= 1 / np.e for answer in after[:2]), "p(x, y) where there is a label"
    assert after[2]["score"] == before[2]["score"], "the probability of the class where there is none"
    assert predictors.of(mixed, "iwes-dis-0") is predictors.of(mixed, "iwes-dis-0"), "loaded once"
