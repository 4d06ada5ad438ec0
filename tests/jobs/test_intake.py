"""Webhooks as they arrive: together, twice, late or in the wrong order, each counts once and is kept when answered."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import event, func, select
from sqlalchemy.exc import DataError

from jobs.intake import Intake, merged
from jobs.workplace import Workplace
from store import pool, rounds
from store.database import Store
from store.projects import UnknownProject
from store.tables import Label, Project, RoundState
from studio.messages import Annotation, Event
from tests.conftest import add_round, make_project

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def project(store: Store) -> Project:
    made = make_project(store, tasks=40)
    add_round(store, made, 0, list(range(1, 31)), wanted=20)
    return made


def said(annotation_id: int, task_id: int, digit: str = "3", *, minutes: int = 0, skipped: bool = False) -> Event:
    result = [{"from_name": "label", "to_name": "image", "type": "choices", "value": {"choices": [digit]}}]
    moment = MOMENT + timedelta(minutes=minutes)
    annotation = Annotation(annotation_id, task_id, [] if skipped else result, skipped, False, 1, MOMENT, moment)
    data = {task_id: {"image": f"/data/{task_id}.png"}}
    return Event("ANNOTATION_CREATED", 1, annotations=[annotation], tasks=data)


def taken_back(annotation_id: int) -> Event:
    return Event("ANNOTATIONS_DELETED", 1, deleted_annotations=[annotation_id])


def live(store: Store) -> dict[int, str | None]:
    with store.read() as session:
        return {x.annotation_id: x.class_name for x in session.scalars(select(Label).where(~Label.deleted))}


def test_webhooks_of_many_threads_are_all_stored_in_fewer_transactions(
    store: Store, place: Workplace, project: Project
) -> None:
    intake, commits = Intake(place), 0

    def count(_connection: object) -> None:
        nonlocal commits
        commits += 1

    event.listen(store.engine, "commit", count)
    ready = threading.Barrier(16)

    def deliver(number: int) -> None:
        if number < 16:
            ready.wait()
        intake.take(project.id, said(100 + number, 1 + number % 30))

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(deliver, range(300)))
    assert sorted(live(store)) == list(range(100, 400))
    assert commits < 300
    with store.read() as session:
        last = rounds.latest(session, project)
        assert last is not None
        assert last.state == RoundState.CLOSED


def test_the_round_is_closed_once_however_many_deliver_its_last_label(place: Workplace, project: Project) -> None:
    """Two web processes are two intakes; each delivers every label."""
    intakes = Intake(place), Intake(place)
    with ThreadPoolExecutor(8) as threads:
        jobs = list(threads.map(lambda n: intakes[n % 2].take(project.id, said(n // 2, 1 + n // 2)), range(2, 42)))
    due = [job for some in jobs for job in some]
    assert due == [f"project-{project.id}-round-0-train"]
    with place.store.read() as session:
        assert session.scalar(select(func.count()).select_from(Label)) == 20


def test_what_is_announced_before_the_first_is_awaited_is_stored_at_once(place: Workplace, project: Project) -> None:
    intake, commits = Intake(place), []
    event.listen(place.store.engine, "commit", commits.append)
    stored = [intake.announce(project.id, said(number, number)) for number in range(1, 6)]
    assert live(place.store) == {}
    assert stored[2]() is None, "nothing is due"
    assert live(place.store) == dict.fromkeys(range(1, 6), "3")
    assert [each() for each in stored] == [None] * 5
    assert len(commits) == 1


def test_nobody_waits_until_what_is_due_is_enqueued(
    place: Workplace, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()
    monkeypatch.setattr("jobs.intake.advance", lambda *_: ["job"] if answers.wait(60) else [])
    intake = Intake(place)
    for number in range(1, 20):
        intake.take(project.id, said(number, number))
    due = intake.announce(project.id, said(20, 20))()
    assert due is not None, "the round is complete"
    intake.announce(project.id, said(21, 21))()
    assert len(live(place.store)) == 21
    assert not due.done()
    later = [intake.announce(project.id, taken_back(number))() for number in (1, 2, 3)]
    answers.set()
    assert due.result() == ["job"]
    assert {one for one in later if one is not due} == {later[-1]}, "one look that is to come sees all there is"


def test_one_that_nobody_awaits_keeps_nobody_waiting(place: Workplace, project: Project) -> None:
    """Its client is gone, or its answer failed; those who come later write it with theirs."""
    intake = Intake(place)
    store = intake._store

    def announce_another(*given: object) -> None:
        intake._store = store  # type: ignore[method-assign]
        intake.announce(project.id, said(2, 2))
        store(*given)  # type: ignore[arg-type]

    intake._store = announce_another  # type: ignore[method-assign,assignment]
    intake.take(project.id, said(1, 1))
    assert live(place.store) == {1: "3"}
    intake.take(project.id, said(3, 3))
    assert live(place.store) == {1: "3", 2: "3", 3: "3"}


def test_one_that_cannot_be_stored_does_not_take_the_others_with_it(place: Workplace, project: Project) -> None:
    intake = Intake(place)
    intake._writing = True  # so that all of them wait together, as for somebody who writes
    with ThreadPoolExecutor(4) as threads:
        good = [threads.submit(intake.take, project.id, said(n, n)) for n in (1, 2)]
        bad = threads.submit(intake.take, project.id + 1, said(3, 3))
        huge = threads.submit(intake.take, project.id, said(2**70, 4))
        while len(intake._waiting) < 4:
            pass
        intake._write_for_all()
        for one in good:
            assert one.result() == []
        with pytest.raises(UnknownProject):
            bad.result()
        with pytest.raises((OverflowError, DataError)):  # as SQLite and as PostgreSQL call it
            huge.result()
    assert live(place.store) == {1: "3", 2: "3"}


def test_a_late_copy_of_a_message_does_not_bring_back_what_was_deleted(place: Workplace, project: Project) -> None:
    intake = Intake(place)
    intake.take(project.id, said(1, 1))
    intake.take(project.id, said(2, 2))
    intake.take(project.id, taken_back(1))
    intake.take(project.id, Event("TASKS_DELETED", 1, deleted_tasks=[2]))
    intake.take(project.id, said(1, 1))
    intake.take(project.id, said(2, 2))
    assert live(place.store) == {}
    with place.store.read() as session:
        assert pool.size(session, project) == 39


def test_an_older_state_that_arrives_later_changes_nothing(place: Workplace, project: Project) -> None:
    intake = Intake(place)
    intake.take(project.id, said(1, 1, "5", minutes=2))
    intake.take(project.id, said(1, 1, "3", minutes=1))
    assert live(place.store) == {1: "5"}


def test_events_are_merged_without_changing_what_they_come_to(place: Workplace, project: Project) -> None:
    events = [said(1, 1), said(2, 2), taken_back(2), said(3, 3), said(1, 1, "8", minutes=1), taken_back(3), said(4, 4)]
    assert [len(one.annotations) for one in merged(events)] == [2, 0, 2, 0, 1]
    intake = Intake(place)
    for one in merged(events):
        intake.take(project.id, one)
    assert live(place.store) == {1: "8", 4: "3"}


def test_a_label_of_a_task_that_another_project_has_is_left_alone(
    store: Store, place: Workplace, project: Project
) -> None:
    other = make_project(store, studio_id=8, secret="another", tasks=50)
    event_ = Event("ANNOTATION_CREATED", 1, annotations=said(1, 45).annotations)
    Intake(place).take(project.id, event_)
    assert live(store) == {}
    with store.read() as session:
        assert pool.size(session, other) == 50


def test_a_round_whose_label_was_taken_back_waits_for_one_more(place: Workplace, project: Project) -> None:
    """It is not counted at every label, only once enough may have come; what was deleted meanwhile must not count."""
    intake = Intake(place)
    for number in range(1, 20):
        intake.take(project.id, said(number, number))
    intake.take(project.id, taken_back(5))
    assert intake.take(project.id, said(20, 20)) == []
    assert intake.take(project.id, said(20, 20, "4", minutes=1)) == [], "a changed label is not another one"
    assert intake.take(project.id, said(21, 21)) == [f"project-{project.id}-round-0-train"]


def test_a_round_also_ends_when_its_last_tasks_are_skipped_or_deleted(place: Workplace, project: Project) -> None:
    intake = Intake(place)
    for number in range(1, 13):
        intake.take(project.id, said(number, number, skipped=number > 10))
    intake.take(project.id, Event("TASKS_DELETED", 1, deleted_tasks=list(range(13, 30))))
    assert intake.take(project.id, said(30, 30, skipped=True)) == [f"project-{project.id}-round-0-train"]


def test_who_waits_for_a_writing_that_is_broken_off_is_told_and_the_next_are_taken(
    place: Workplace, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    intake = Intake(place)
    store = intake._store

    def broken_off(*_: object) -> None:
        raise SystemExit

    intake._writing = True
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(intake.take, project.id, said(1, 1))
        while not intake._waiting:
            pass
        monkeypatch.setattr(intake, "_store", broken_off)
        with pytest.raises(SystemExit):
            intake._write_for_all()
        with pytest.raises(RuntimeError, match="broken off"):
            waiting.result()
    monkeypatch.setattr(intake, "_store", store)
    intake.take(project.id, said(2, 2))
    assert live(place.store) == {2: "3"}
