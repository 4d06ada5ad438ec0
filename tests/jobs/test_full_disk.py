"""The disk is full when a model is to be kept: told, tried again, given up, and the loop goes on with the old model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from jobs import queues, versions
from jobs.loop import due
from jobs.queues import GPU
from jobs.train import train_round
from jobs.workplace import Workplace
from models import checkpoint
from store import rounds
from store.tables import Project, Round, RoundState
from tests.files import Files
from tests.full_disk import can_make_disks, with_a_tiny_disk_at
from tests.jobs.test_train import a_project, files, labelled_round
from tests.jobs.workers import Workers, wait_for

__all__ = ["files"]


def round_(place: Workplace, project: Project, number: int) -> Round | None:
    with place.store.read() as session:
        return next((r for r in rounds.all_of(session, project) if r.number == number), None)


def is_(found: Round | None, state: RoundState) -> bool:
    return found is not None and found.state == state


@pytest.mark.slow
@pytest.mark.skipif(not can_make_disks(), reason="this system lets nobody but root mount a disk")
def test_a_model_that_does_not_fit_on_the_disk_stops_nobody(busy: Workplace, files: Files, tmp_path: Path) -> None:
    project = a_project(busy.store, files)
    labelled_round(busy.store, project, 0, list(range(1, 9)))
    train_round(busy, project.id, 0)
    labelled_round(busy.store, project, 1, [9, 10, 11, 12])
    full = versions.folder(busy.settings, project, versions.version(1))
    full.mkdir(parents=True)
    with busy.store.read() as session:
        (work,) = due(session, project)
    queues.ensure(busy.redis, replace(work, retries=(1,)))
    with Workers(busy.settings, tmp_path / "diary", tmp_path / "worker.log") as workers:
        workers.hire(GPU, within=lambda command: with_a_tiny_disk_at(full, 32, command))
        wait_for(lambda: is_(round_(busy, project, 1), RoundState.TRAINED), "the training to be given up")
        wait_for(lambda: is_(round_(busy, project, 2), RoundState.DRAWN), "the next draw")
    given_up, drawn = round_(busy, project, 1), round_(busy, project, 2)
    assert given_up is not None
    assert drawn is not None
    assert "No space left on device" in str(given_up.problem)
    assert "(after 2 tries); the last good model stays" in str(given_up.problem)
    assert drawn.model_version == versions.version(0)
    last = checkpoint.load(versions.folder(busy.settings, project, versions.version(0)), busy.workshop)
    assert last.version == versions.version(0)
    assert list(full.iterdir()) == []
