"""Opens the store: the engine, its transactions, and the migrations that bring a database up to date."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import URL, Connection, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, InterfaceError, NoSuchModuleError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session

BUSY_SECONDS = 30.0
"""How long a job waits for its turn to write, and for PostgreSQL to answer; then it fails and is tried again later."""
AWAY = (OperationalError, InterfaceError, PoolTimeout)
"""What is raised while the store does not answer, or is busy for longer than anybody waits: that passes."""
MIGRATION_LOCK = 7_411_023
"""Any fixed number: the PostgreSQL advisory lock under which one process migrates while others wait."""


class StoreError(RuntimeError):
    """The store cannot be opened; the message says what to set."""


class Store:
    """A database of ours. Cheap to make; safe to share between threads; make a new one after a fork."""

    def __init__(self, url: str, *, busy_seconds: float = BUSY_SECONDS) -> None:
        """Whoever waits longer than `busy_seconds` for its turn to write gets an `OperationalError`; for a connection
        while others have all of them, a `PoolTimeout`. Both are `AWAY`."""
        try:
            parsed = _with_driver(make_url(url))
            parsed.get_dialect().import_dbapi()
        except (ArgumentError, NoSuchModuleError) as error:
            raise StoreError("DATABASE_URL is not an address of SQLite or PostgreSQL; try sqlite:///file.db") from error
        except ImportError as error:
            raise StoreError(f"DATABASE_URL needs a driver that is not installed: {error}") from error
        # an error must not print the token or secret it was about
        options: dict[str, Any] = {"hide_parameters": True, "pool_timeout": busy_seconds}
        self.is_sqlite = parsed.get_backend_name() == "sqlite"
        if self.is_sqlite:
            _make_private(parsed.database)
            # A few connections stay open: to open one and prepare it costs more than a label does.
            self.engine = create_engine(parsed, connect_args={"timeout": busy_seconds}, **options)
            event.listen(self.engine, "connect", _prepare_sqlite)
            event.listen(self.engine, "begin", _begin_sqlite)
        else:
            patience = {} if "connect_timeout" in parsed.query else {"connect_timeout": round(busy_seconds)}
            self.engine = create_engine(parsed, pool_pre_ping=True, connect_args=patience, **options)
            event.listen(self.engine, "connect", partial(_prepare_postgresql, busy_seconds))
        self._writer = self.engine.execution_options(iwes_writes=True)

    @contextmanager
    def write(self) -> Iterator[Session]:
        """One transaction that may write. In SQLite it takes the writer's place at once, so it never deadlocks."""
        with Session(self._writer, expire_on_commit=False) as session, session.begin():
            yield session

    @contextmanager
    def read(self) -> Iterator[Session]:
        with Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def snapshot(self) -> Iterator[Session]:
        """A read over several statements that all see the same moment. In SQLite every read is one."""
        engine = self.engine if self.is_sqlite else self.engine.execution_options(isolation_level="REPEATABLE READ")
        with Session(engine, expire_on_commit=False) as session:
            yield session

    def migrate(self, to: str = "head") -> None:
        """Brings the schema up to date; several processes may call it at the same time. One that is up to date is only
        read: every job opens the store, and must not wait for a writer to find that out."""
        logging.getLogger("alembic").setLevel(logging.WARNING)
        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
        wanted = ScriptDirectory.from_config(config).as_revision_number(to)
        with self.engine.connect() as connection:
            if MigrationContext.configure(connection).get_current_revision() == wanted:
                return
        with self._writer.connect() as connection:
            if self.is_sqlite:
                # A table is rebuilt to change it. To drop the old one would otherwise delete all that refers to it.
                connection.connection.cursor().execute("PRAGMA foreign_keys=OFF")
                connection.connection.cursor().execute(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000:.0f}")
            with connection.begin():
                if not self.is_sqlite:
                    connection.execute(text("SET LOCAL lock_timeout = 0"))
                    connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
                config.attributes["connection"] = connection
                try:
                    command.upgrade(config, to)
                except CommandError as error:
                    raise StoreError(f"the store was made by a newer version than this one: {error}") from error
            connection.invalidate()  # nobody else is to get it from the pool without its foreign keys

    def close(self) -> None:
        self.engine.dispose()


def _with_driver(url: URL) -> URL:
    return url.set(drivername="postgresql+psycopg") if url.drivername in ("postgresql", "postgres") else url


def open_store(url: str, *, busy_seconds: float = BUSY_SECONDS) -> Store:
    store = Store(url, busy_seconds=busy_seconds)
    store.migrate()
    return store


def _make_private(database: str | None) -> None:
    """The store holds Label Studio's token, so its file is for its owner alone, whoever made the folder."""
    if database and database != ":memory:":
        path = Path(database).absolute()
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.touch(mode=0o600)
        except OSError as error:
            raise StoreError(
                f"the store cannot be kept at {path}: {error.strerror}; set IWES_HOME to a folder of yours"
            ) from error


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # the driver's own BEGIN comes too late; ours is in _begin_sqlite
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")  # a label acknowledged is a label kept, even when the power fails
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _prepare_postgresql(busy_seconds: float, connection: Any, _record: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = {busy_seconds * 1000:.0f}")
    connection.commit()


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("iwes_writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
