"""What tests of every room share: settings in a folder of the test's own, a store, a connected project."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from backend.embedded.label_studio import LabelStudio
from jobs.settings import Settings
from jobs.workplace import Workplace
from store import labels, pool, rounds
from store.database import Store, open_store
from store.tables import Base, Draw, Project, Round, Task
from tests.live import label_studio

DIGITS = [str(digit) for digit in range(10)]

# Some virtual machines show a processor's AMX units and then fail at their first instruction, which ends the whole run.
# Only tests compute in bfloat16 on a CPU at all.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")


@pytest.fixture(scope="session")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabelStudio]:
    """One real Label Studio for all tests that need one; each makes projects of its own in it."""
    with label_studio(tmp_path_factory.mktemp("label-studio")) as server:
        yield server


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty SQLite store, to be copied: its migrations take longer than most tests."""
    path: Path = tmp_path_factory.mktemp("migrated") / "store.db"
    open_store(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def settings(tmp_path: Path, migrated: Path) -> Settings:
    """SQLite in the test's folder; or the database named by IWES_TEST_DATABASE_URL, emptied after each test."""
    database = os.environ.get("IWES_TEST_DATABASE_URL", "")
    if not database:
        (tmp_path / "home").mkdir(mode=0o700)
        shutil.copy(migrated, tmp_path / "home" / "store.db")
    return Settings.from_env({"IWES_HOME": str(tmp_path / "home"), "DATABASE_URL": database})


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    opened = open_store(settings.database_url)
    yield opened
    if not opened.is_sqlite:
        Base.metadata.drop_all(opened.engine)
        with opened.engine.begin() as connection:
            connection.execute(text("DROP TABLE alembic_version"))
    opened.close()


@pytest.fixture
def place(settings: Settings, store: Store) -> Workplace:
    """A workplace whose Redis does not answer: what is due stays in the store."""
    return Workplace(replace(settings, redis_url="redis://127.0.0.1:1"), store)


def make_project(store: Store, *, tasks: int = 0, **changes: object) -> Project:
    values: dict[str, object] = {
        "studio_url": "http://studio.test",
        "studio_id": 1,
        "title": "digits",
        "token": "t" * 40,
        "secret": "s3cret",
        "backend_url": "http://backend.test",
        "control": "label",
        "target": "image",
        "field": "image",
        "classes": DIGITS,
        "seed_size": 4,
        "k": 4,
        "cap": 2.0,
        "floor": 0.05,
        "reserve": 0.5,
        "sharpness": 1.0,
        "network": "small-cnn",
        "rng_seed": 7,
        "connected": True,
    }
    with store.write() as session:
        project = Project(**(values | changes))
        session.add(project)
        session.flush()
        pool.mirror(session, project, {i: {"image": f"/data/{i}.png"} for i in range(1, tasks + 1)})
    return project


def add_round(
    store: Store, project: Project, number: int, studio_ids: list[int], *, wanted: int, publish: bool = True
) -> None:
    with store.write() as session:
        tasks = pool.by_studio_id(session, project, studio_ids)
        draws = [
            Draw(
                task_id=tasks[studio_id].id,
                rank=rank,
                reserve=rank >= wanted,
                position=rank,
                passes=0,
                score=0.5,
                probability=0.5,
                weight=2.0,
                inclusion=0.5,
            )
            for rank, studio_id in enumerate(studio_ids)
        ]
        sizes = {"wanted": wanted, "batch_size": wanted, "pool_size": len(tasks), "examined": 1}
        settings = {"cap": 2.0, "floor": 0.05, "reserve": 0.5, "sharpness": 1.0}
        round_ = Round(number=number, rule="ent", **sizes, **settings)
        rounds.add(session, project, round_, draws)
        if publish:
            rounds.open_(session, round_)


def a_label(
    annotation_id: int, class_name: str | None = "3", *, minutes: int = 0, **changes: object
) -> labels.NewLabel:
    moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    values: dict[str, object] = {
        "annotation_id": annotation_id,
        "class_name": class_name,
        "skipped": class_name is None,
        "ground_truth": False,
        "annotator": 1,
        "created_at": moment,
        "updated_at": moment,
    }
    return labels.NewLabel(**(values | changes))  # type: ignore[arg-type]


def put_label(store: Store, project: Project, studio_id: int, new: labels.NewLabel) -> None:
    """A label as it arrives: recorded, and the round closed if it was the last."""
    with store.write() as session:
        task = pool.by_studio_id(session, project, [studio_id])[studio_id]
        labels.record(session, project, [(task.id, new)])
        rounds.close_if_complete(session, project)


def task_of(store: Store, project: Project, studio_id: int) -> Task:
    with store.read() as session:
        return pool.by_studio_id(session, project, [studio_id])[studio_id]
