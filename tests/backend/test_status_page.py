"""What people read in a terminal about rounds and jobs."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from backend.status_page import show
from jobs.status import JobStatus, QueueStatus, all_projects
from jobs.workplace import Workplace
from store import rounds
from store.database import Store
from store.tables import Model
from tests.conftest import a_label, add_round, make_project, put_label


def page(place: Workplace, *jobs: JobStatus) -> str:
    console = Console(width=240, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    show(all_projects(place), QueueStatus(True, 1, {}, list(jobs)), console)
    return console.export_text()


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (
            {"epoch": 12, "of": 100, "loss": 0.2104, "accuracy": 0.913, "seconds_left": 8.4},
            "running, epoch 12 of at most 100, loss 0.210, 91.3% of held-out labels right, at most 8 s left",
        ),
        (
            {"epoch": 1, "of": 25, "loss": 2.3, "accuracy": None, "seconds_left": 60.0},
            "running, epoch 1 of at most 25, loss 2.300, at most 60 s left",
        ),
        ({"described": 512, "of": 5000}, "running, describing images, 512 of 5000"),
        ({"fetched": 64, "of": 1500}, "running, fetching images for the next draw, 64 of 1500"),
    ],
)
def test_a_training_shows_how_far_it_is(place: Workplace, told: dict[str, Any], said: str) -> None:
    assert f"project-1-round-0-train: {said}" in page(
        place, JobStatus("project-1-round-0-train", "running", None, told)
    )


def test_a_round_shows_what_came_of_it(place: Workplace, store: Store) -> None:
    project = make_project(store, tasks=8)
    for number, ids in enumerate([[1, 2], [3, 4]]):
        add_round(store, project, number, ids, wanted=2)
        for n in ids:
            put_label(store, project, n, a_label(n))
    with store.write() as session:
        model = Model(version="iwes-model-0", examples=120, metrics={"held_out_accuracy": 0.75})
        rounds.trained(session, project, rounds.by_number(session, project, 0), model)
        rounds.trained(session, project, rounds.by_number(session, project, 1), None, problem="the loss became nan [x]")
    text = page(place)
    assert "iwes-model-0 on 120 labels, 75.0% of held-out labels right" in text
    assert "no model: the loss became nan [x]" in text
