"""The pool a draw may choose from: neither labelled, nor skipped, nor set aside, nor on annotators' screens."""

from __future__ import annotations

from sqlalchemy import select

from store import pool
from store.database import Store
from store.tables import Label, Project, Task
from tests.conftest import a_label, add_round, make_project, put_label


def drawable(store: Store, project: Project, at_least: int = 1) -> list[int]:
    with store.read() as session:
        tasks = [session.get_one(Task, i) for i in pool.drawable(session, project, at_least=at_least)]
        return [task.studio_id for task in tasks]


def test_a_new_project_can_be_drawn_from_in_the_order_of_its_tasks(store: Store) -> None:
    project = make_project(store, tasks=5)
    assert drawable(store, project) == [1, 2, 3, 4, 5]


def test_labelled_skipped_deleted_and_unreadable_tasks_are_left_out(store: Store) -> None:
    project = make_project(store, tasks=6)
    put_label(store, project, 1, a_label(1))
    put_label(store, project, 2, a_label(2, None))
    with store.write() as session:
        pool.forget(session, project, [3])
        pool.set_aside(session, pool.by_studio_id(session, project, [4])[4].id, "not an image")
    assert drawable(store, project) == [5, 6]
    with store.read() as session:
        assert pool.problems(session, project) == {"not an image": 1}


def test_tasks_on_screen_are_left_out_while_others_are_there(store: Store) -> None:
    project = make_project(store, tasks=6)
    add_round(store, project, 0, [1, 2, 3], wanted=2)
    assert drawable(store, project, at_least=3) == [4, 5, 6]
    assert drawable(store, project, at_least=4) == [1, 2, 3, 4, 5, 6]


def test_a_round_not_published_yet_does_not_take_the_screen(store: Store) -> None:
    project = make_project(store, tasks=6)
    add_round(store, project, 0, [1, 2, 3], wanted=2)
    add_round(store, project, 1, [4, 5], wanted=2, publish=False)
    assert drawable(store, project) == [4, 5, 6]


def test_mirroring_twice_adds_nothing_and_takes_new_data(store: Store) -> None:
    project = make_project(store, tasks=3)
    with store.write() as session:
        assert pool.mirror(session, project, {3: {"image": "/data/new.png"}, 4: {"image": "/data/4.png"}}) == 1
        assert pool.mirror(session, project, {3: {"image": "/data/new.png"}, 4: {"image": "/data/4.png"}}) == 0
        assert session.scalars(select(Task.data).where(Task.studio_id == 3)).one() == {"image": "/data/new.png"}


def test_deleting_a_task_takes_its_labels_along(store: Store) -> None:
    project = make_project(store, tasks=3)
    put_label(store, project, 1, a_label(1))
    with store.write() as session:
        pool.forget(session, project, [1])
    with store.read() as session:
        assert session.scalars(select(Label)).one().deleted
        assert pool.size(session, project) == 2
