"""Tasks that came with a label: which they are, what is selected of them, and what trains."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from store import examples, labels, pool, projects, rounds, subsets
from store.database import Store
from store.subsets import BadSubset
from store.tables import Doubt, Draw, Label, Mode, Model, Project, Round, RoundState, Rule, Subset
from tests.conftest import a_label, add_round, make_project, put_label


def came(store: Store, project: Project, studio_id: int, class_name: str | None = "3", **changes: object) -> None:
    put_label(store, project, studio_id, a_label(100 + studio_id, class_name, imported=True, **changes))


def begun(store: Store, project: Project, **wishes: object) -> Subset:
    with store.write() as session:
        wishes = {"name": "dis", "rule": "dis", "size": 4} | wishes
        return subsets.ask(session, projects.lock(session, project.id), **wishes)  # type: ignore[arg-type]


def select_some(store: Store, project: Project, subset: Subset, number: int, studio_ids: list[int]) -> None:
    with store.write() as session:
        tasks = pool.by_studio_id(session, project, studio_ids)
        draws = [
            Draw(
                task_id=tasks[n].id,
                rank=rank,
                reserve=False,
                position=rank,
                passes=0,
                probability=0.25,
                weight=2.0,
                inclusion=0.3,
            )
            for rank, n in enumerate(studio_ids)
        ]
        sizes = {"wanted": len(draws), "batch_size": len(draws), "pool_size": 9, "examined": 9}
        settings = {"cap": 2.0, "floor": 0.05, "reserve": 0.0, "sharpness": 1.0}
        round_ = Round(number=number, rule="dis", **sizes, **settings)
        rounds.add_selected(session, project, subset, round_, draws)


def weights(store: Store, project: Project, subset: Subset | None = None) -> dict[int, float]:
    with store.read() as session:
        return {e.studio_id: e.weight for e in examples.of_project(session, project, subset=subset)}


def selectable(store: Store, project: Project, subset: Subset) -> dict[int, str]:
    with store.read() as session:
        by_id = pool.selectable(session, project, subset)
        numbers = {task.id: n for n, task in pool.by_studio_id(session, project, range(1, 10)).items()}
        return {numbers[task_id]: name for task_id, name in by_id.items()}


def test_labels_that_were_there_before_form_the_pool_that_subsets_are_selected_from(store: Store) -> None:
    project = make_project(store, tasks=6)
    for n in (1, 2, 3):
        came(store, project, n)
    put_label(store, project, 4, a_label(4))
    subset = begun(store, project, size=2)
    assert selectable(store, project, subset) == {1: "3", 2: "3", 3: "3"}
    with store.read() as session:
        assert pool.came_labelled(session, project) == 3
        assert len(pool.drawable(session, project, at_least=0)) == 2


def test_labels_that_disagree_are_settled_and_unknown_classes_and_skips_left_out(store: Store) -> None:
    project = make_project(store, tasks=5)
    came(store, project, 1, "3", ground_truth=True)
    put_label(store, project, 1, a_label(1, "5", imported=True, minutes=9))
    put_label(store, project, 1, a_label(2, "5", imported=True, minutes=9))
    came(store, project, 2, "3")
    put_label(store, project, 2, a_label(3, "7", imported=True, minutes=5))
    came(store, project, 3, None)
    put_label(store, project, 4, a_label(4, None, imported=True, skipped=False, problem="unknown class 'horse'"))
    came(store, project, 5, "3")
    subset = begun(store, project, size=2)
    assert selectable(store, project, subset) == {1: "3", 2: "7", 5: "3"}
    with store.read() as session:
        assert labels.problems(session, project) == {"unknown class 'horse'": 1}


def test_only_what_is_selected_of_them_trains_each_with_its_weight(store: Store) -> None:
    project = make_project(store, tasks=6)
    for n in (1, 2, 3):
        came(store, project, n)
    put_label(store, project, 4, a_label(4))
    subset = begun(store, project, size=2)
    select_some(store, project, subset, 0, [2])
    assert weights(store, project, subset) == {2: 2.0, 4: 1.0}
    assert selectable(store, project, subset).keys() == {1, 3}


def test_in_mode_ent_labels_that_were_there_all_train_as_they_are(store: Store) -> None:
    project = make_project(store, tasks=3, mode=Mode.ENT)
    for n in (1, 2):
        came(store, project, n)
    assert weights(store, project) == {1: 1.0, 2: 1.0}
    with store.read() as session:
        assert rounds.new_labels(session, project, 0) == 2
        assert subsets.current(session, project) is None


def test_a_task_that_an_annotator_has_labelled_too_trains_already_and_is_not_selected(store: Store) -> None:
    project = make_project(store, tasks=3)
    for n in (1, 2, 3):
        came(store, project, n)
    put_label(store, project, 2, a_label(7, "5", minutes=5))
    subset = begun(store, project, size=2)
    assert selectable(store, project, subset).keys() == {1, 3}
    assert weights(store, project, subset) == {2: 1.0}


def test_tasks_and_labels_deleted_during_the_selection_no_longer_count(store: Store) -> None:
    project = make_project(store, tasks=6)
    for n in range(1, 7):
        came(store, project, n)
    subset = begun(store, project, size=4, seed_size=4)
    select_some(store, project, subset, 0, [1, 2, 3, 4])
    with store.write() as session:
        assert subsets.selected(session, subset) == 4
        pool.forget(session, project, [1])
        labels.delete(session, project, [102])
    with store.read() as session:
        assert subsets.selected(session, subset) == 2
        assert subsets.wanted(session, project, subset) == 2
        assert [draw.task.studio_id for draw in subsets.members(session, subset)] == [3, 4]
        assert [task.studio_id for task in subsets.dropped(session, subset)] == [2], "Label Studio still shows it"
    assert weights(store, project, subset).keys() == {3, 4}


def test_a_label_changed_by_a_reviewer_stays_in_its_subset_with_the_new_class(store: Store) -> None:
    project = make_project(store, tasks=3)
    for n in (1, 2, 3):
        came(store, project, n)
    subset = begun(store, project, size=2)
    select_some(store, project, subset, 0, [1])
    put_label(store, project, 1, a_label(101, "8", minutes=30))
    with store.read() as session:
        (example,) = examples.of_project(session, project, subset=subset)
    assert (example.class_name, example.weight, example.seed) == ("8", 2.0, True)


def test_a_label_on_a_selected_task_is_not_taken_for_an_answer_to_the_selection(store: Store) -> None:
    project = make_project(store, tasks=3)
    for n in (1, 2, 3):
        came(store, project, n)
    subset = begun(store, project, size=2)
    select_some(store, project, subset, 0, [1])
    put_label(store, project, 1, a_label(7, "5", minutes=5))
    with store.read() as session:
        (label,) = session.scalars(select(Label).where(Label.annotation_id == 7))
    assert label.draw_id is None


@pytest.mark.parametrize("rule", Rule)
def test_an_automatic_subset_keeps_pace_with_the_annotators_and_ends_at_the_size_asked_for(
    store: Store, rule: Rule
) -> None:
    project = make_project(store, tasks=9)
    for n in range(1, 7):
        came(store, project, n)
    with store.write() as session:
        subset = subsets.begin_if_mixed(session, project)
        assert subset is not None
        assert subsets.begin_if_mixed(session, project) is None, "it begins once"
        assert subsets.target(session, project, subset) == 4
    add_round(store, project, 0, [7], wanted=1)
    with store.write() as session:
        session.scalars(select(Round)).one().rule = "seed"
        assert subsets.target(session, project, subset) == 4
    add_round(store, project, 1, [8], wanted=1)
    with store.write() as session:
        rounds.by_number(session, project, 1).rule = rule
        assert subsets.target(session, project, subset) == 8
        stored = subsets.by_id(session, subset.id)
        stored.size = 6
        assert subsets.target(session, project, stored) == 6
    for n in (7, 8, 9):
        put_label(store, project, n, a_label(n))
    with store.write() as session:
        stored = subsets.by_id(session, subset.id)
        stored.size = 20
        assert subsets.target(session, project, stored) == 20, "no task is left to ask for: it goes on by itself"


@pytest.mark.parametrize(
    ("wish", "named"),
    [
        ({"size": 1}, "--size is 1"),
        ({"size": 9}, "from 2 to 3"),
        ({"rule": "ent"}, "--rule"),
        ({"name": "queue"}, "--name"),
        ({"name": "Ünfit"}, "--name"),
        ({"name": "first-2"}, "cannot be told from 'first'"),
        ({"name": "first", "size": 3, "rule": "loss"}, "being selected by dis"),
        ({"name": "first", "size": 2}, "was asked for with 3 tasks"),
    ],
)
def test_a_subset_that_cannot_be_selected_is_refused_by_what_is_wrong(
    store: Store, wish: dict[str, object], named: str
) -> None:
    project = make_project(store, tasks=4)
    for n in (1, 2, 3):
        came(store, project, n)
    begun(store, project, name="first", size=3)
    with pytest.raises(BadSubset, match=named):
        begun(store, project, **wish)
    with store.read() as session:
        assert [(s.name, s.size) for s in subsets.all_of(session, project)] == [("first", 3)]


def test_where_nothing_came_with_a_label_there_is_nothing_to_select_from(store: Store) -> None:
    project = make_project(store, tasks=4)
    with pytest.raises(BadSubset, match="nothing to select from"):
        begun(store, project)


def test_a_round_of_a_subset_is_over_when_both_trainings_are(store: Store) -> None:
    project = make_project(store, tasks=4)
    for n in (1, 2, 3):
        came(store, project, n)
    subset = begun(store, project, size=2)
    select_some(store, project, subset, 0, [1])
    with store.write() as session:
        round_ = rounds.by_number(session, project, 0, subset)
        assert round_.state == RoundState.CLOSED
        rounds.trained(session, project, round_, Model(version="g", examples=1, metrics={}), twin=True)
        assert round_.state == RoundState.CLOSED
        assert rounds.current_model(session, project) is None, "a g never serves alone"
        rounds.trained(session, project, round_, Model(version="again", examples=1, metrics={}), twin=True)
        rounds.trained(session, project, round_, Model(version="f", examples=1, metrics={}))
        assert round_.state == RoundState.TRAINED
        session.flush()
        f, g = rounds.current_pair(session, project, subset)
        assert (f and f.version, g and g.version) == ("f", "g")
        twin = rounds.twin_of(session, project, "f")
        assert twin is not None
        assert twin.version == "g"
        assert rounds.versions_in_use(session, project) == {"f", "g"}


def test_an_open_seed_round_ends_when_labels_that_were_there_have_made_a_model(store: Store) -> None:
    project = make_project(store, tasks=6)
    for n in (1, 2, 3):
        came(store, project, n)
    add_round(store, project, 0, [4, 5], wanted=2)
    with store.write() as session:
        rounds.by_number(session, project, 0).rule = "seed"
    put_label(store, project, 4, a_label(4))
    subset = begun(store, project, size=2, rule="loss")
    select_some(store, project, subset, 0, [1])
    with store.write() as session:
        rounds.trained(
            session,
            project,
            rounds.by_number(session, project, 0, subset),
            Model(version="f", examples=1, metrics={}),
        )
    with store.read() as session:
        last = rounds.latest(session, project)
        assert last is not None
        assert (last.number, last.state) == (0, RoundState.TRAINED)
    assert weights(store, project, subset).keys() == {1, 4}, "what was labelled of it is not lost"


def test_changing_the_mode_changes_the_rule_of_a_subset_that_began_by_itself(store: Store) -> None:
    project = make_project(store, tasks=4)
    for n in (1, 2):
        came(store, project, n)
    with store.write() as session:
        subsets.begin_if_mixed(session, project)
    with store.write() as session:
        projects.change_mode(session, project.id, Mode.LOSS)
    with store.read() as session:
        (subset,) = subsets.all_of(session, project)
        assert (subset.rule, projects.by_id(session, project.id).mode) == ("loss", "loss")


def test_the_same_wish_again_is_no_mistake_although_a_task_is_gone_since(store: Store) -> None:
    project = make_project(store, tasks=4)
    for n in (1, 2, 3):
        came(store, project, n)
    begun(store, project, size=3)
    with store.write() as session:
        pool.forget(session, project, [1])
    assert begun(store, project, size=3).size == 3


def test_of_a_complete_subset_tasks_that_are_gone_are_replaced_together(store: Store) -> None:
    """Each round costs two trainings and a look at every label."""
    project = make_project(store, tasks=60)
    for n in range(1, 61):
        came(store, project, n)
    subset = begun(store, project, size=40, seed_size=40)
    select_some(store, project, subset, 0, list(range(1, 41)))
    with store.write() as session:
        pool.forget(session, project, [1])
        assert subsets.wanted(session, project, subset) == 1, "it is not complete yet"
        subsets.published(session, subsets.by_id(session, subset.id), 0)
    with store.write() as session:
        stored = subsets.by_id(session, subset.id)
        assert subsets.wanted(session, project, stored) == 0
    begun(store, project, size=40, seed_size=40)
    with store.write() as session:
        stored = subsets.by_id(session, subset.id)
        assert subsets.wanted(session, project, stored) == 1, "it was asked for again"
        subsets.published(session, stored, 0)
        pool.forget(session, project, [2])
        assert subsets.wanted(session, project, stored) == 2
    begun(store, project, size=41, seed_size=40)
    with store.read() as session:
        assert subsets.wanted(session, project, subsets.by_id(session, subset.id)) == 3, "more was asked for"


def test_the_model_of_an_older_subset_never_comes_before_that_of_the_newest(store: Store) -> None:
    project = make_project(store, tasks=6)
    for n in (1, 2, 3):
        came(store, project, n)
    with store.write() as session:
        older = subsets.begin_if_mixed(session, project)
        assert older is not None
    newer = begun(store, project, size=2)
    with store.write() as session:
        for subset, version in ((newer, "of the newest"), (older, "of the older")):
            session.add(
                Model(
                    project_id=project.id, subset_id=subset.id, round_number=0, version=version, examples=1, metrics={}
                )
            )
            session.flush()
    with store.read() as session:
        current = rounds.current_model(session, project)
        assert current is not None
        assert current.version == "of the newest"
        assert subsets.wanted(session, project, older) == 0, "and it takes no more tasks"


def test_a_doubt_withdrawn_while_an_older_state_was_shown_is_still_to_be_shown(store: Store) -> None:
    project = make_project(store, tasks=3)
    for n in (1, 2, 3):
        came(store, project, n)
    subset = begun(store, project, size=2)

    def doubt(task_id: int) -> Doubt:
        return Doubt(task_id=task_id, class_name="3", suggested="5", improbability=0.9, disagreement=0.1)

    with store.write() as session:
        tasks = pool.by_studio_id(session, project, [1, 2])
        subsets.replace_doubts(session, subset, [doubt(tasks[1].id), doubt(tasks[2].id)])
    with store.read() as session:
        seen = subsets.doubts(session, subset, withdrawn=True)
    with store.write() as session:
        subsets.replace_doubts(session, subset, [doubt(tasks[1].id)])
        subsets.published(session, subsets.by_id(session, subset.id), 0, seen)
    with store.read() as session:
        assert [doubt.task_id for doubt in subsets.doubts(session, subset, withdrawn=True)] == [tasks[2].id]
