"""The yardstick: the same Flask and gunicorn with a handler that reads the JSON and does one insert into the same kind
of database, written as anybody would. `python -m benchmarks.load.yardstick` serves it."""

from __future__ import annotations

import os
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from flask import Flask, request
from sqlalchemy import create_engine, event, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker

from backend import serve
from backend.embedded.process import Stack
from benchmarks.load import server
from jobs.settings import Settings

FILE = "yardstick.db"


class Base(DeclarativeBase):
    pass


class Row(Base):
    __tablename__ = "annotation"

    id: Mapped[int] = mapped_column(primary_key=True)
    annotation_id: Mapped[int]
    task_id: Mapped[int]
    class_name: Mapped[str]
    created_at: Mapped[datetime]


def start(stack: Stack, settings: Settings) -> server.Server:
    def stored(first: int, last: int) -> list[int]:
        numbers = select(Row.annotation_id).where(Row.annotation_id >= first, Row.annotation_id < last)
        with sessions(settings.home)() as session:
            return list(session.scalars(numbers))

    argv = [sys.executable, "-m", "benchmarks.load.yardstick"]
    env = {**os.environ, **settings.as_env()}
    log = settings.home / "logs" / "yardstick.log"
    return server.start(stack, "yardstick", lambda _: argv, log, lambda port: {**env, "IWES_PORT": str(port)}, stored)


def sessions(home: Path) -> sessionmaker[Session]:
    engine = create_engine(f"sqlite:///{home / FILE}")
    event.listen(engine, "connect", _prepare)
    Base.metadata.create_all(engine)
    return sessionmaker(engine)


def create_app(home: Path) -> Flask:
    app, session_of = Flask("yardstick"), sessions(home)

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


class Yardstick(serve.Server):
    """Served by the backend's own gunicorn, with all of its settings."""

    def load(self) -> Flask:
        return create_app(self._settings.home)


if __name__ == "__main__":
    settings = Settings.from_env()
    sessions(settings.home)  # makes the table before two workers would at once
    Yardstick(settings).run()
