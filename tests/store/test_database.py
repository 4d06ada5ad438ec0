"""The schema comes from migrations alone, and several processes may bring it up to date at the same time."""

from __future__ import annotations

import multiprocessing
import stat
from datetime import datetime
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import MetaData, select, text
from sqlalchemy.exc import IntegrityError

from store.database import Store, StoreError, open_store
from store.tables import Base, Draw, Label, Mode, Project


def test_migrations_make_exactly_the_tables_the_code_knows(store: Store) -> None:
    with store.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


def test_six_processes_may_migrate_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["store.database"])  # imported once for all six
    processes = [context.Process(target=open_store, args=(url,)) for _ in range(6)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 6
    with Store(url).read() as session:
        assert session.scalar(text("SELECT count(*) FROM alembic_version")) == 1


def test_sqlite_keeps_what_it_acknowledged_and_lets_readers_read(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path / 'store.db'}").read() as session:
        assert session.scalar(text("PRAGMA journal_mode")) == "wal"
        assert session.scalar(text("PRAGMA synchronous")) == 2
        assert session.scalar(text("PRAGMA foreign_keys")) == 1


def test_the_folder_of_the_store_is_for_its_owner_alone(tmp_path: Path) -> None:
    open_store(f"sqlite:///{tmp_path / 'new' / 'store.db'}").close()
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_the_store_is_for_its_owner_alone_in_a_folder_that_was_there_before(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    open_store(f"sqlite:///{tmp_path / 'store.db'}").close()
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("store.db*")} == {0o600}


def test_an_error_does_not_show_the_token_it_was_about(store: Store) -> None:
    from tests.conftest import make_project

    make_project(store, token="very-secret-token")
    with pytest.raises(IntegrityError) as error:
        make_project(store, token="very-secret-token")
    assert "very-secret-token" not in str(error.value)


def test_an_address_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="DATABASE_URL"):
        Store("no database")


def test_a_store_of_the_first_version_keeps_its_draws_and_labels(tmp_path: Path) -> None:
    """Tables are rebuilt to change them; what refers to them must not be deleted with the old ones."""
    store = Store(f"sqlite:///{tmp_path / 'store.db'}")
    store.migrate(to="0001")
    moment = datetime(2026, 1, 1)
    texts = dict.fromkeys(("studio_url", "title", "token", "secret", "backend_url", "control", "target", "field"), "x")
    numbers = {"seed_size": 4, "k": 4, "cap": 2, "floor": 0.05, "reserve": 0.5, "sharpness": 1, "rng_seed": 7}
    sizes = {"wanted": 1, "batch_size": 1, "pool_size": 1, "examined": 1}
    chances = {"cap": 2, "floor": 0.05, "reserve": 0.5, "sharpness": 1}
    round_ = {"project_id": 1, "number": 0, "state": "trained", "rule": "seed", "drawn_at": moment, **sizes, **chances}
    others = {"classes": ["a", "b"], "training": {}, "before": {}, "connected": True, "network": "small-cnn"}
    numbers_drawn = {"rank": 0, "reserve": False, "position": 0, "passes": 0, "probability": 0.5, "weight": 2}
    said = {"class_name": "a", "skipped": False, "ground_truth": False, "created_at": moment, "updated_at": moment}
    rows: dict[str, dict[str, object]] = {
        "project": {"id": 1, "studio_id": 1, "created_at": moment, **texts, **numbers, **others},
        "task": {"id": 1, "project_id": 1, "studio_id": 1, "data": {}, "gone": False},
        "round": {"id": 1, "trained_at": moment, **round_},
        "draw": {"id": 1, "round_id": 1, "task_id": 1, "inclusion": 0.5, **numbers_drawn},
        "label": {"id": 1, "project_id": 1, "annotation_id": 1, "task_id": 1, "draw_id": 1, "round_number": 0}
        | said
        | {"deleted": False},
    }
    old = MetaData()
    old.reflect(store.engine)
    with store.engine.begin() as connection:
        for table, row in rows.items():
            connection.execute(old.tables[table].insert(), row)
    store.migrate()
    with store.read() as session:
        (draw,) = session.scalars(select(Draw))
        (label,) = session.scalars(select(Label))
        assert (draw.round.number, draw.round.f_trained_at, label.draw_id) == (0, draw.round.trained_at, 1)
        assert not label.imported
        (project,) = session.scalars(select(Project))
        assert project.mode == Mode.ENT, "an old project goes on as it was"
    with pytest.raises(IntegrityError), store.engine.begin() as connection:
        connection.execute(old.tables["round"].insert(), round_)


def test_a_store_of_a_newer_version_is_told_apart_in_one_line(store: Store) -> None:
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreError, match="made by a newer version than this one"):
        store.migrate()
