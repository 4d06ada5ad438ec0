"""What is due next follows from the store alone, so nothing that dies with Redis or a process is ever lost."""

from __future__ import annotations

import pytest

from jobs import queues
from jobs.draw import draw_round
from jobs.loop import advance, due
from jobs.status import all_projects, queue_status
from jobs.worker import tick
from jobs.workplace import Workplace
from store import pool, rounds
from store.tables import Model, Project
from tests.conftest import a_label, add_round, make_project, put_label


def due_now(place: Workplace, project: Project) -> str | None:
    with place.store.read() as session:
        works = due(session, project)
    assert len(works) < 2
    return works[0].id.removeprefix(f"project-{project.id}-") if works else None


def waiting(place: Workplace) -> list[str]:
    return [job_id for name in (queues.STUDIO, queues.GPU) for job_id in queues.queue(place.redis, name).job_ids]


def test_each_state_of_the_last_round_makes_one_step_due(busy: Workplace) -> None:
    project = make_project(busy.store, tasks=9)
    assert due_now(busy, project) == "round-0-draw"
    add_round(busy.store, project, 0, [1, 2, 3], wanted=2, publish=False)
    assert due_now(busy, project) == "round-0-publish"
    with busy.store.write() as session:
        rounds.open_(session, rounds.by_number(session, project, 0))
    assert due_now(busy, project) is None
    for n in (1, 2):
        put_label(busy.store, project, n, a_label(n))
    assert due_now(busy, project) == "round-0-train"
    with busy.store.write() as session:
        model = Model(version="iwes-model-0", examples=2, metrics={"seconds": 1.0})
        rounds.trained(session, project, rounds.by_number(session, project, 0), model)
    assert due_now(busy, project) == "round-1-draw"


def test_nothing_is_due_once_every_task_is_labelled(busy: Workplace) -> None:
    project = make_project(busy.store, tasks=2)
    add_round(busy.store, project, 0, [1, 2], wanted=2)
    for n in (1, 2):
        put_label(busy.store, project, n, a_label(n))
    with busy.store.write() as session:
        rounds.trained(session, project, rounds.by_number(session, project, 0), None)
    assert due_now(busy, project) is None
    with busy.store.write() as session:
        pool.mirror(session, project, {3: {"image": "/data/3.png"}})
    assert due_now(busy, project) == "round-1-draw"


def test_labels_that_came_during_the_last_training_are_trained_on_although_no_task_is_left(busy: Workplace) -> None:
    project = make_project(busy.store, tasks=3)
    add_round(busy.store, project, 0, [1, 2, 3], wanted=2)
    for n in (1, 2, 3):
        put_label(busy.store, project, n, a_label(n))
    with busy.store.write() as session:
        rounds.trained(session, project, rounds.by_number(session, project, 0), None)
    assert due_now(busy, project) == "round-1-draw"
    draw_round(busy, project.id, 1)
    assert due_now(busy, project) == "round-1-train"
    with busy.store.write() as session:
        rounds.trained(session, project, rounds.by_number(session, project, 1), None)
    assert due_now(busy, project) is None


def test_nothing_is_due_for_a_disconnected_project(busy: Workplace) -> None:
    project = make_project(busy.store, tasks=2, connected=False)
    assert due_now(busy, project) is None


def test_advancing_many_times_enqueues_once(busy: Workplace) -> None:
    project = make_project(busy.store, tasks=3)
    for _ in range(5):
        assert advance(busy, project.id) == [f"project-{project.id}-round-0-draw"]
    assert waiting(busy) == [f"project-{project.id}-round-0-draw"]


def test_the_tick_brings_back_what_a_flushed_redis_forgot(busy: Workplace) -> None:
    project = make_project(busy.store, tasks=3)
    advance(busy, project.id)
    busy.redis.flushall()
    assert waiting(busy) == []
    tick(busy.settings, busy.redis)
    tick(busy.settings, busy.redis)
    assert waiting(busy) == [f"project-{project.id}-reconcile", f"project-{project.id}-round-0-draw"]


def test_a_redis_that_is_away_stops_nobody(place: Workplace, caplog: pytest.LogCaptureFixture) -> None:
    project = make_project(place.store, tasks=3)
    assert advance(place, project.id) == [f"project-{project.id}-round-0-draw"]
    assert "stays due" in caplog.text
    assert not queue_status(place.redis).reachable


def test_status_tells_rounds_labels_missing_and_waiting_jobs(busy: Workplace) -> None:
    project = make_project(busy.store, tasks=9)
    add_round(busy.store, project, 0, [1, 2, 3], wanted=2)
    put_label(busy.store, project, 1, a_label(1))
    put_label(busy.store, project, 2, a_label(2, None))
    (status,) = all_projects(busy)
    assert (status.tasks, status.unlabelled, status.labels_until_retrain) == (9, 8, 1)
    assert [(r.number, r.labels, r.wanted, r.drawn, r.skipped) for r in status.rounds] == [(0, 1, 2, 3, 1)]
    queues.ensure(busy.redis, queues.Work("project-1-round-0-train", "tests.jobs.work.count", (1,), queues.GPU))
    found = queue_status(busy.redis)
    assert (found.workers, found.waiting["gpu"]) == (0, 1)
    assert [(job.id, job.state) for job in found.jobs] == [("project-1-round-0-train", "waiting")]
