"""The picture of the loop: at each state of a round one station is lit, and says how far it is."""

from __future__ import annotations

from datetime import timedelta

import pytest

from backend.dashboard.loop_picture import NEXT, NOW, LoopPicture, picture, seconds_per_label
from jobs.status import JobStatus, project_status
from store import drawn
from store.database import Store
from store.tables import Project, RoundState, now
from tests.dashboard.conftest import set_state


def seen(store: Store, project: Project, *jobs: JobStatus) -> LoopPicture:
    with store.read() as session:
        stored = session.get_one(Project, project.id)
        round_ = drawn.surfaced(session, stored)
        left = drawn.left(session, round_) if round_ else None
        return picture(project_status(session, stored), left, jobs, [])


@pytest.mark.parametrize(
    ("state", "lit"),
    [
        (RoundState.OPEN, "Labels"),
        (RoundState.CLOSED, "Training"),
        (RoundState.TRAINED, "Draw"),
        (RoundState.DRAWN, "Publish"),
    ],
)
def test_one_station_is_lit_in_each_state(store: Store, project: Project, state: RoundState, lit: str) -> None:
    set_state(store, project, 1, state)
    assert [station.name for station in seen(store, project).stations if station.state == NOW] == [lit]


def test_labels_fill_the_ring_of_their_station(store: Store, project: Project) -> None:
    labels = seen(store, project).stations[0]
    assert (labels.figure, labels.share, labels.detail) == ("3 of 4", 0.75, "1 to go")
    assert labels.spoken == "Labels, now: 3 of 4 1 to go"


def test_a_training_tells_how_far_it_is_and_how_long_it_takes(store: Store, project: Project) -> None:
    set_state(store, project, 1, RoundState.CLOSED)
    told = {"epoch": 20, "of": 80, "loss": 0.4, "accuracy": None, "seconds_left": 100.0}
    job = JobStatus(f"project-{project.id}-round-1-train", "running", None, told)
    training = seen(store, project, job).stations[1]
    assert (training.share, training.figure, training.detail) == (0.25, "25%", "at most 2 min left")


def test_a_training_that_a_worker_has_taken_waits_for_nobody(store: Store, project: Project) -> None:
    set_state(store, project, 1, RoundState.CLOSED)
    waits, begins = (
        seen(store, project, JobStatus(f"project-{project.id}-round-1-train", state, None, None)).stations[1]
        for state in ("waiting", "running")
    )
    assert (waits.figure, waits.detail) == ("waits", "for a worker")
    assert (begins.figure, begins.detail) == ("begins", "from 3 more labels")


def test_a_draw_tells_how_many_images_its_model_was_asked_about(store: Store, project: Project) -> None:
    set_state(store, project, 1, RoundState.TRAINED)
    job = JobStatus(f"project-{project.id}-round-2-draw", "running", None, {"scored": 6, "of": 24})
    drawing = seen(store, project, job).stations[2]
    assert (drawing.share, drawing.figure) == (0.25, "6 asked")


def test_while_a_model_trains_the_reserve_that_is_left_is_shown(store: Store, project: Project) -> None:
    set_state(store, project, 1, RoundState.CLOSED)
    assert seen(store, project).stations[0].detail == "2 of 2 in reserve"


def test_a_training_that_failed_says_so(store: Store, project: Project) -> None:
    set_state(store, project, 1, RoundState.CLOSED)
    job = JobStatus(f"project-{project.id}-round-1-train", "to be retried", "out of memory", None)
    assert seen(store, project, job).stations[1].figure == "failed"


def test_a_disconnected_project_is_at_no_station(store: Store, project: Project) -> None:
    with store.write() as session:
        session.get_one(Project, project.id).connected = False
    found = seen(store, project)
    assert {station.state for station in found.stations} == {NEXT}
    assert found.sentence == "Disconnected; labels and weights are kept"


def test_the_pace_is_that_of_the_last_hour_and_unknown_from_few_labels() -> None:
    lately = [now() - timedelta(seconds=6 * number) for number in range(1, 21)]
    assert seconds_per_label(lately) == pytest.approx(6.0, rel=0.05)
    assert seconds_per_label(lately[:5]) is None
    assert seconds_per_label([now() - timedelta(hours=2)] * 20) is None
