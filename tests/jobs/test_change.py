"""Settings of a connected project change from its next step on, and never half."""

from __future__ import annotations

import numpy as np
import pytest

from jobs import draw
from jobs.change import change
from jobs.connect import BadOption
from jobs.status import project_status
from jobs.workplace import Workplace
from models.plan import Plan, PlanError
from store import rounds, subsets
from store.database import Store
from store.tables import Mode, Project
from tests.conftest import a_label, add_round, make_project, put_label


@pytest.fixture
def project(store: Store) -> Project:
    project = make_project(store, tasks=40)
    add_round(store, project, 0, [1, 2, 3, 4], wanted=4)
    return project


def stored(store: Store, project: Project) -> Project:
    with store.read() as session:
        return session.get_one(Project, project.id)


def test_what_is_as_it_was_changes_nothing(place: Workplace, project: Project) -> None:
    assert change(place, project.id, {"k": 4, "cap": 2.0, "rule": "ent", "network": "small-cnn"}) == []


def test_each_change_says_what_was_what_is_and_what_comes_of_it(place: Workplace, project: Project) -> None:
    found = change(place, project.id, {"k": 6, "floor": 0.1})
    assert [(made.option, made.before, made.after) for made in found] == [("k", 4, 6), ("floor", 0.05, 0.1)]
    assert found[0].effect == "from round 1 on; round 0 still waits for its 4 labels"
    assert found[1].effect == "from the next draw on; weights and probabilities of earlier draws stay as they were"


def test_another_rule_counts_from_the_next_draw_on(place: Workplace, store: Store, project: Project) -> None:
    (made,) = change(place, project.id, {"rule": "margin"})
    assert made.said == "rule is margin now, and was ent"
    assert made.effect.startswith("from the next draw on")
    assert stored(store, project).rule == "margin"
    with store.read() as session:
        status = project_status(session, stored(store, project))
        assert status.drawn_by == "IWeS-margin for 40 unlabelled tasks"
        assert status.rounds[0].rule == "ent", "what was drawn before stays as it was"


def test_the_next_draw_is_made_with_the_new_settings(place: Workplace, store: Store, project: Project) -> None:
    change(place, project.id, {"k": 6, "reserve": 0.0})
    with store.write() as session:
        session.get_one(Project, project.id).seed_size = 6
    draw.draw_round(place, project.id, 1)
    with store.read() as session:
        drawn = rounds.by_number(session, project, 1)
        assert (drawn.batch_size, len(drawn.draws), drawn.reserve) == (6, 6, 0.0)
        assert rounds.by_number(session, project, 0).wanted == 4


@pytest.mark.parametrize(
    ("wishes", "option"),
    [
        ({"k": 0}, "k"),
        ({"rule": "best"}, "rule"),
        ({"cap": 0.9}, "cap"),
        ({"floor": np.nan}, "floor"),
        ({"network": "perceptron"}, "network"),
    ],
)
def test_one_bad_wish_leaves_all_as_it_was(
    place: Workplace, store: Store, project: Project, wishes: dict[str, object], option: str
) -> None:
    with pytest.raises(BadOption) as told:
        change(place, project.id, {"sharpness": 3.0, **wishes})
    assert told.value.option == option
    assert stored(store, project).sharpness == 1.0
    with pytest.raises(PlanError):
        change(place, project.id, {"sharpness": 3.0, "way": "sideways"})
    assert stored(store, project).sharpness == 1.0


def test_another_network_decides_anew_whether_it_is_pretrained(
    place: Workplace, store: Store, project: Project
) -> None:
    with store.write() as session:
        session.get_one(Project, project.id).training = Plan(way="full", pretrained=False).as_dict()
    change(place, project.id, {"network": "efficientnet-lite0"})
    assert Plan.from_dict(stored(store, project).training) == Plan(way="auto", pretrained=None)


def test_a_mode_that_selects_begins_a_subset_where_tasks_came_with_labels(
    place: Workplace, store: Store, project: Project
) -> None:
    with store.write() as session:
        session.get_one(Project, project.id).mode = Mode.ENT
    for task in range(20, 30):
        put_label(store, project, task, a_label(task, imported=True))
    (made,) = change(place, project.id, {"mode": "auto"})
    assert made.said == "mode is auto now, and was ent"
    with store.read() as session:
        assert [subset.name for subset in subsets.all_of(session, project)] == ["auto"]
