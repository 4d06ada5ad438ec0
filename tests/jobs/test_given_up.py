"""A training that fails for good ends its round; annotators go on with the last good model."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console

from backend import status_page
from jobs import queues
from jobs.draw import draw_round
from jobs.given_up import end_failed_training
from jobs.loop import TRAINING_RETRIES, due
from jobs.status import all_projects, queue_status
from jobs.worker import tick
from jobs.workplace import Workplace
from store import rounds
from store.tables import Model, Project, Round, RoundState
from tests.conftest import a_label, add_round, make_project, put_label
from tests.jobs.test_queues import run_all


def closed_round(place: Workplace, project: Project, number: int, ids: list[int]) -> None:
    add_round(place.store, project, number, ids, wanted=len(ids))
    for n in ids:
        put_label(place.store, project, n, a_label(n))


def trained_once(place: Workplace) -> Project:
    """A project with a model of round 0, whose round 1 is to be trained."""
    project = make_project(place.store, tasks=9)
    closed_round(place, project, 0, [1, 2])
    with place.store.write() as session:
        model = Model(version="iwes-model-0", examples=2, metrics={})
        rounds.trained(session, project, rounds.by_number(session, project, 0), model)
    closed_round(place, project, 1, [3, 4])
    return project


def fail_for_good(place: Workplace, project: Project, *, away: bool = False) -> None:
    with place.store.read() as session:
        (work,) = due(session, project)
    assert work.id.endswith("-train")
    assert work.retries == TRAINING_RETRIES
    queues.ensure(place.redis, replace(work, function="tests.jobs.work.fail", arguments=(7,), retries=()))
    run_all(place)
    job = queues.find(place.redis, work.id)
    assert job is not None
    job.meta |= {"reason": "OSError: No space left on device", "away": away}
    job.save_meta()


def last_round(place: Workplace, project: Project) -> Round:
    with place.store.read() as session:
        found = rounds.latest(session, project)
    assert found is not None
    return found


def test_the_round_ends_with_the_reason_and_the_next_is_drawn_with_the_last_good_model(busy: Workplace) -> None:
    project = trained_once(busy)
    fail_for_good(busy, project)
    tick(busy.settings, busy.redis)
    ended = last_round(busy, project)
    assert (ended.number, ended.state) == (1, RoundState.TRAINED)
    assert ended.problem == "OSError: No space left on device (after 1 try); the last good model stays"
    with busy.store.read() as session:
        model = rounds.current_model(session, project)
        assert [work.id for work in due(session, project)] == [f"project-{project.id}-round-2-draw"]
    assert model is not None
    assert model.version == "iwes-model-0"
    assert f"project-{project.id}-round-2-draw" in queues.queue(busy.redis, queues.GPU).job_ids


def test_status_shows_why(busy: Workplace) -> None:
    project = trained_once(busy)
    fail_for_good(busy, project)
    tick(busy.settings, busy.redis)
    console = Console(width=300, record=True, file=open("/dev/null", "w"))  # noqa: PTH123, SIM115
    status_page.show(all_projects(busy), queue_status(busy.redis), console)
    shown = console.export_text()
    assert "no model: OSError: No space left on device (after 1 try); the last good model stays" in shown
    assert f"project-{project.id}-round-1-train: failed" in shown


def test_without_any_model_the_next_round_is_drawn_by_chance_again(busy: Workplace) -> None:
    project = make_project(busy.store, tasks=12)
    closed_round(busy, project, 0, [1, 2])
    fail_for_good(busy, project)
    tick(busy.settings, busy.redis)
    draw_round(busy, project.id, 1)
    assert (last_round(busy, project).number, last_round(busy, project).rule) == (1, rounds.SEED)


def test_a_training_that_could_not_reach_something_goes_on_trying(busy: Workplace) -> None:
    project = trained_once(busy)
    fail_for_good(busy, project, away=True)
    tick(busy.settings, busy.redis)
    assert last_round(busy, project).state == RoundState.CLOSED


def test_a_training_with_tries_left_is_not_given_up(busy: Workplace) -> None:
    project = trained_once(busy)
    with busy.store.read() as session:
        (work,) = due(session, project)
    queues.ensure(busy.redis, replace(work, function="tests.jobs.work.fail", arguments=(7,)))
    run_all(busy)
    tick(busy.settings, busy.redis)
    assert last_round(busy, project).state == RoundState.CLOSED


def test_a_redis_that_is_away_gives_nothing_up(place: Workplace) -> None:
    project = make_project(place.store, tasks=9)
    closed_round(place, project, 0, [1, 2])
    end_failed_training(place, project.id)
    assert last_round(place, project).state == RoundState.CLOSED
