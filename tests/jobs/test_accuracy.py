"""A model is judged by the labels it asked for itself, each with the chance it had of being asked for."""

from __future__ import annotations

import pytest

from jobs import accuracy
from jobs.workplace import Workplace
from store import rounds
from store.tables import Project
from tests.conftest import a_label, add_round, make_project, put_label


@pytest.fixture
def project(place: Workplace) -> Project:
    """Round 1, drawn by a model, asks for tasks 1-4; 5 and 6 are its reserve. The model calls each of them a 3."""
    project = make_project(place.store, tasks=20)
    add_round(place.store, project, 0, [10, 11], wanted=2)
    add_round(place.store, project, 1, [1, 2, 3, 4, 5, 6], wanted=4)
    with place.store.write() as session:
        round_ = rounds.by_number(session, project, 1)
        round_.model_version, round_.examined, round_.pool_size = "iwes-model-0", 6, 6
        for draw in round_.draws:
            draw.predicted = "3"
    return project


def judged(place: Workplace, project: Project) -> dict[int, accuracy.Accuracy]:
    with place.store.read() as session:
        return accuracy.of_rounds(session, project)


def test_nothing_is_said_before_a_label_is_in_nor_of_the_seed(place: Workplace, project: Project) -> None:
    put_label(place.store, project, 10, a_label(10))
    assert judged(place, project) == {}


def test_right_and_wrong_answers_count_by_one_over_their_chance(place: Workplace, project: Project) -> None:
    with place.store.write() as session:
        first = rounds.by_number(session, project, 1).draws[0]
        first.inclusion = 0.1
    put_label(place.store, project, 1, a_label(1, "8"))
    put_label(place.store, project, 2, a_label(2, "3"))
    found = judged(place, project)[1]
    assert found.estimate.value == pytest.approx(2 / (10 + 2))
    assert (found.model_version, found.response.answered, found.response.missing) == ("iwes-model-0", 2, 2)


def test_labels_of_the_reserve_train_but_do_not_judge(place: Workplace, project: Project) -> None:
    put_label(place.store, project, 1, a_label(1, "3"))
    put_label(place.store, project, 5, a_label(5, "8"))
    assert judged(place, project)[1].estimate.value == 1.0


def test_a_skipped_task_is_told_as_missing(place: Workplace, project: Project) -> None:
    put_label(place.store, project, 1, a_label(1, None))
    for n in (2, 3, 4):
        put_label(place.store, project, n, a_label(n, "3"))
    found = judged(place, project)[1]
    assert found.response.missing == 1
    assert str(found).startswith("100% (")
    assert "1 labels missing" in str(found)
