"""The schema comes from migrations alone, and several processes may bring it up to date at the same time."""

from __future__ import annotations

import multiprocessing
import stat
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from store.database import Store, StoreError, open_store
from store.tables import Base


def test_migrations_make_exactly_the_tables_the_code_knows(store: Store) -> None:
    with store.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


def test_six_processes_may_migrate_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    context = multiprocessing.get_context("spawn")
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
