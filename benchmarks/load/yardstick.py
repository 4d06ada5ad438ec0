"""The yardstick: the same Flask and gunicorn with a handler that reads the JSON and does one insert into the same kind
of database, written as anybody would. `python -m benchmarks.load.yardstick 1 64` serves it from one process with 64
threads, as the backend is; it is measured with two processes as well, and compared with where it does best."""

from __future__ import annotations

import os
import sys
from datetime import datetime
from typing import Any

from flask import Flask, request
from sqlalchemy import create_engine, event, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker

from backend.embedded.process import Stack
from benchmarks.load import server
from benchmarks.load.ours import Changed
from jobs.settings import Settings

FILE = "yardstick.db"
NAME = "yardstick"
SETTINGS = [(1, 64), (2, 32)]
"""Processes and threads."""


class Base(DeclarativeBase):
    pass


class Row(Base):
    __tablename__ = "annotation"

    id: Mapped[int] = mapped_column(primary_key=True)
    annotation_id: Mapped[int]
    task_id: Mapped[int]
    class_name: Mapped[str]
    created_at: Mapped[datetime]


def start(stack: Stack, settings: Settings, workers: int, threads: int) -> server.Server:
    def stored(first: int, last: int) -> list[int]:
        numbers = select(Row.annotation_id).where(Row.annotation_id >= first, Row.annotation_id < last)
        with sessions(settings)() as session:
            return list(session.scalars(numbers))

    name = f"{NAME} {workers} × {threads}"
    argv = [sys.executable, "-m", "benchmarks.load.yardstick", str(workers), str(threads)]
    env = {**os.environ, **settings.as_env()}
    log = settings.home / "logs" / f"{NAME}-{workers}-{threads}.log"
    return server.start(stack, name, lambda _: argv, log, lambda port: {**env, "IWES_PORT": str(port)}, stored)


def sessions(settings: Settings) -> sessionmaker[Session]:
    """In a file of its own, or in the backend's PostgreSQL."""
    if settings.database_url.startswith("sqlite"):
        engine = create_engine(f"sqlite:///{settings.home / FILE}")
        event.listen(engine, "connect", _prepare)
    else:
        engine = create_engine(settings.database_url)
    Base.metadata.create_all(engine)
    return sessionmaker(engine)


def create_app(settings: Settings) -> Flask:
    app, session_of = Flask("yardstick"), sessions(settings)

    @app.get("/health")
    def health() -> dict[str, str]:
        return {"status": "UP"}

    @app.post("/webhook")
    def webhook() -> dict[str, str]:
        annotation = request.get_json()["annotation"]
        with session_of() as session:
            session.add(
                Row(
                    annotation_id=annotation["id"],
                    task_id=annotation["task"],
                    class_name=annotation["result"][0]["value"]["choices"][0],
                    created_at=datetime.fromisoformat(annotation["created_at"]),
                )
            )
            session.commit()
        return {"status": "ok"}

    return app


def _prepare(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


class Yardstick(Changed):
    """Served by gunicorn with threads, and with all of the backend's other settings."""

    def load_config(self) -> None:
        super().load_config()
        self.cfg.set("worker_class", "gthread")

    def load(self) -> Flask:
        return create_app(self._settings)


if __name__ == "__main__":
    Yardstick(Settings.from_env(), *map(int, sys.argv[1:3])).run()
