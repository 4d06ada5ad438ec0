"""A label is recorded once, joined to one draw, and its round closes exactly when its last label is in."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from sqlalchemy import func, select

from store import examples, labels, pool, projects, rounds
from store.database import Store
from store.tables import Draw, Label, Project, RoundState
from tests.conftest import a_label, add_round, make_project, put_label


@pytest.fixture
def project(store: Store) -> Project:
    """Twelve tasks; round 0 has drawn 1-4 as its batch and 5, 6 as its reserve."""
    project = make_project(store, tasks=12)
    add_round(store, project, 0, [1, 2, 3, 4, 5, 6], wanted=4)
    return project


def all_labels(store: Store, project: Project) -> list[Label]:
    with store.read() as session:
        return list(session.scalars(select(Label).where(Label.project_id == project.id).order_by(Label.id)))


def state(store: Store, project: Project) -> RoundState:
    with store.read() as session:
        last = rounds.latest(session, project)
        assert last is not None
        return last.state


def test_the_last_label_closes_the_round_and_no_earlier_one(store: Store, project: Project) -> None:
    for n in (1, 2, 3):
        put_label(store, project, n, a_label(n))
        assert state(store, project) == RoundState.OPEN
    put_label(store, project, 4, a_label(4))
    assert state(store, project) == RoundState.CLOSED


def test_the_same_annotation_twice_is_one_label(store: Store, project: Project) -> None:
    for _ in range(5):
        put_label(store, project, 1, a_label(1))
    assert len(all_labels(store, project)) == 1
    assert state(store, project) == RoundState.OPEN


def test_two_annotations_of_one_task_count_once(store: Store, project: Project) -> None:
    for annotation_id in range(1, 5):
        put_label(store, project, 1, a_label(annotation_id, annotator=annotation_id))
    with store.read() as session:
        assert rounds.progress(session, rounds.by_number(session, project, 0)).labels == 1


def test_every_label_of_a_drawn_task_belongs_to_its_draw(store: Store, project: Project) -> None:
    for n in (1, 5):
        put_label(store, project, n, a_label(n))
    with store.read() as session:
        for label in session.scalars(select(Label)):
            assert label.draw is not None
            assert label.draw.task_id == label.task_id


@pytest.mark.parametrize(
    ("minutes", "late", "asked_by"),
    [(-5, True, 0), (-5, False, 0), (5, True, 1), (5, False, 1), (-60, True, None), (-60, False, 1)],
)
def test_a_label_heard_of_late_belongs_to_the_round_that_had_asked_for_it(
    store: Store, project: Project, minutes: int, late: bool, asked_by: int | None
) -> None:
    """Task 1 was labelled, nobody told, and round 1 drew it in ignorance of that. An hour ago was no draw: a label
    from then, found in Label Studio, is manual; one that has just come was made by a clock that is behind."""
    add_round(store, project, 1, [1, 7, 8], wanted=3)
    with store.write() as session:
        rounds.by_number(session, project, 0).drawn_at -= timedelta(minutes=30)
        again = rounds.by_number(session, project, 1).drawn_at
        task = pool.by_studio_id(session, project, [1])[1]
        made = a_label(1, created_at=again + timedelta(minutes=minutes))
        labels.record(session, project, [(task.id, made)], read_there=late)
    (label,) = all_labels(store, project)
    with store.read() as session:
        draw = session.get(Draw, label.draw_id) if label.draw_id else None
        assert (draw.round.number if draw else None) == asked_by


def test_a_label_on_a_task_never_drawn_is_manual_and_does_not_count(store: Store, project: Project) -> None:
    for n in (9, 10, 11, 12):
        put_label(store, project, n, a_label(n))
    assert all(label.draw_id is None for label in all_labels(store, project))
    assert state(store, project) == RoundState.OPEN
    with store.read() as session:
        assert {e.weight for e in examples.of_project(session, project)} == {1.0}


def test_a_label_that_arrives_during_training_counts_for_the_next_round(store: Store, project: Project) -> None:
    for n in (1, 2, 3, 4):
        put_label(store, project, n, a_label(n))
    put_label(store, project, 5, a_label(5))
    assert [label.round_number for label in all_labels(store, project)] == [0, 0, 0, 0, 1]
    with store.read() as session:
        assert len(examples.of_project(session, project, up_to_round=0)) == 4
        assert len(examples.of_project(session, project, up_to_round=1)) == 5


def test_late_labels_of_an_earlier_reserve_do_not_close_the_next_round(store: Store, project: Project) -> None:
    for n in (1, 2, 3, 4):
        put_label(store, project, n, a_label(n))
    with store.write() as session:
        rounds.trained(session, project, rounds.by_number(session, project, 0), None)
    add_round(store, project, 1, [7, 8, 9], wanted=2)
    put_label(store, project, 5, a_label(5))
    put_label(store, project, 6, a_label(6))
    assert state(store, project) == RoundState.OPEN
    put_label(store, project, 7, a_label(7))
    put_label(store, project, 8, a_label(8))
    assert state(store, project) == RoundState.CLOSED


def test_an_older_state_of_an_annotation_does_not_undo_a_newer_one(store: Store, project: Project) -> None:
    put_label(store, project, 1, a_label(1, "3", minutes=0))
    put_label(store, project, 1, a_label(1, "5", minutes=2))
    put_label(store, project, 1, a_label(1, "3", minutes=0))
    assert [label.class_name for label in all_labels(store, project)] == ["5"]


def test_a_deleted_label_reopens_its_task_and_no_longer_counts(store: Store, project: Project) -> None:
    put_label(store, project, 1, a_label(1))
    with store.write() as session:
        assert labels.delete(session, project, [1, 999]) == 1
        assert labels.delete(session, project, [1]) == 0
    for n in (2, 3, 4):
        put_label(store, project, n, a_label(n))
    assert state(store, project) == RoundState.OPEN
    with store.read() as session:
        assert len(examples.of_project(session, project)) == 3


def test_a_skipped_task_is_no_label_and_is_replaced_from_the_reserve(store: Store, project: Project) -> None:
    put_label(store, project, 1, a_label(1, None))
    for n in (2, 3, 4):
        put_label(store, project, n, a_label(n))
    assert state(store, project) == RoundState.OPEN
    put_label(store, project, 5, a_label(5))
    assert state(store, project) == RoundState.CLOSED
    with store.read() as session:
        assert rounds.progress(session, rounds.by_number(session, project, 0)).skipped == 1


def test_a_round_whose_tasks_are_all_settled_closes_although_labels_are_missing(store: Store, project: Project) -> None:
    for n in (1, 2, 3):
        put_label(store, project, n, a_label(n))
    for n in (4, 5, 6):
        put_label(store, project, n, a_label(n, None))
    assert state(store, project) == RoundState.CLOSED


def test_a_manual_label_is_new_to_the_next_training(store: Store, project: Project) -> None:
    put_label(store, project, 9, a_label(9))
    with store.write() as session:
        assert rounds.close_early(session, project) is not None
        assert [e.studio_id for e in examples.of_project(session, project, up_to_round=0)] == [9]


def test_start_training_needs_a_new_label(store: Store, project: Project) -> None:
    with store.write() as session:
        assert rounds.close_early(session, project) is None
    put_label(store, project, 1, a_label(1))
    with store.write() as session:
        assert rounds.close_early(session, project) is not None
    assert state(store, project) == RoundState.CLOSED


def test_two_threads_delivering_the_last_two_labels_close_the_round_once(store: Store, project: Project) -> None:
    for n in (1, 2):
        put_label(store, project, n, a_label(n))
    closed: list[int] = []
    ready = threading.Barrier(8)

    def deliver(n: int) -> None:
        ready.wait()
        with store.write() as session:
            locked = projects.lock(session, project.id)
            task = pool.by_studio_id(session, locked, [3 + n % 2])[3 + n % 2]
            labels.record(session, locked, [(task.id, a_label(3 + n % 2))])
            if rounds.close_if_complete(session, locked):
                closed.append(n)

    threads = [threading.Thread(target=deliver, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(closed) == 1
    with store.read() as session:
        assert session.scalar(select(func.count()).select_from(Label)) == 4


@pytest.mark.parametrize(
    ("votes", "winner"),
    [
        ([("1", False), ("2", False), ("2", False)], "2"),
        ([("1", True), ("2", False), ("2", False)], "1"),
        ([("1", False), ("2", False)], "2"),
    ],
    ids=["majority", "ground truth wins", "of equals the newest"],
)
def test_several_annotations_make_one_example(
    store: Store, project: Project, votes: list[tuple[str, bool]], winner: str
) -> None:
    for n, (class_name, truth) in enumerate(votes, start=1):
        put_label(store, project, 1, a_label(n, class_name, minutes=n, ground_truth=truth))
    with store.read() as session:
        (example,) = examples.of_project(session, project)
    assert example.class_name == winner
    assert example.weight == 2.0
