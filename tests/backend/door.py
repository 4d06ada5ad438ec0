"""A watched door: after each request it is judged what was answered, and what became of the store."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from flask import Flask
from sqlalchemy import Connection, select
from werkzeug.test import TestResponse

from store import pool
from store.database import Store
from store.tables import Base, Label, Project, Task
from tests.backend.mutations import CANARY
from tests.conftest import a_label, add_round, make_project, put_label

HEADER = {"X-IWeS-Secret": "s3cret"}
SECRETS = [CANARY, "s3cret", "an0ther", "t" * 40, "A9LRzqbfGmYLYiQczS7Wm6XXVaXYpxVI5SvYC2ap", "admintoken0123456789"]
"""Of the store, and of what is sent."""
INNER = ["Traceback", 'File "', "Error(", "Exception", "sqlalchemy", "psycopg", "sqlite", " object at 0x", "\\x00"]
FIELD = re.compile(r"^the body|\b(action|project|annotations?|tasks?)\b|event is about")
FOREIGN_TASKS = range(1001, 1006)
"""Tasks of the other project."""

Contents = dict[str, list[tuple[Any, ...]]]


class Door:
    """Of the project of the captures, which asks for cat, dog or bird on eight of its twelve tasks. There is another
    project, too."""

    def __init__(self, app: Flask, store: Store, **project: object) -> None:
        self.app = app
        self.store = store
        self.sent: Counter[int] = Counter()
        """How often each status was answered."""
        asks = {"control": "cls", "target": "img", "classes": ["cat", "dog", "bird"]}
        self.project = make_project(store, tasks=12, **asks, **project)
        add_round(store, self.project, 0, [1, 2, 3, 4, 5, 6, 7, 8], wanted=8)
        self._other = _another_project(store)
        self._client = app.test_client()
        self._looking = store.engine.connect()
        self.look_again()

    def look_again(self) -> None:
        """After the store was changed by somebody else."""
        self._before = _contents(self._looking)
        self._others = _rows_of(self._before, self._other)

    def send(
        self,
        path: str,
        content: bytes,
        *,
        content_type: str | None = "application/json",
        headers: dict[str, str] | None = None,
        about: str = "",
    ) -> TestResponse:
        shown = HEADER | (headers or {})
        answer = self._client.post(path, data=content, content_type=content_type, headers=shown)
        self.judge(answer.status_code, answer.text, about)
        return answer

    def judge(self, status: int, said: str, about: str = "") -> None:
        """After a call of Label Studio's, whoever made it."""
        self.sent[status] += 1
        after = _contents(self._looking)
        assert status < 500, f"{about}: {said}"
        assert not [secret for secret in SECRETS if secret in said], f"{about}: {said}"
        if status >= 400:
            assert after == self._before, f"{about} was refused and has changed the store"
            error = json.loads(said)["error"]
            assert len(error) < 200, f"{about}: {error}"
            assert not [sign for sign in INNER if sign in error], f"{about}: {error}"
            assert status != 400 or FIELD.search(error), f"{about}: {error!r} names no field"
        elif after != self._before:
            assert _rows_of(after, self._other) == self._others, f"{about} has changed another project"
            self._check_labels(about)
        self._before = after

    def is_untouched(self) -> bool:
        return _contents(self._looking) == self._before

    def close(self) -> None:
        self._looking.close()

    def _check_labels(self, about: str) -> None:
        with self.store.read() as session:
            for label, owner in session.execute(select(Label, Task.project_id).join(Task)):
                assert label.project_id == owner, f"{about} has labelled a task of another project"
                if label.class_name is None:
                    assert label.skipped or label.problem, about
                elif owner == self.project.id:
                    assert label.class_name in self.project.classes, about


def _another_project(store: Store) -> Project:
    other = make_project(store, studio_id=2, secret="an0ther")
    with store.write() as session:
        pool.mirror(session, other, {n: {"image": f"/data/{n}.png"} for n in FOREIGN_TASKS})
    add_round(store, other, 0, list(FOREIGN_TASKS), wanted=4)
    put_label(store, other, FOREIGN_TASKS[0], a_label(1))
    return other


_EVERY_ROW = {
    table.name: f"SELECT * FROM {table.name} ORDER BY {table.primary_key.columns[0].name}"  # noqa: S608
    for table in Base.metadata.sorted_tables
}
_OWNER = {
    table.name: "id" if table.name == Project.__tablename__ else "project_id"
    for table in Base.metadata.sorted_tables
    if "project_id" in table.columns or table.name == Project.__tablename__
}


def _contents(connection: Connection) -> Contents:
    """All rows of all tables, as they are kept."""
    with connection.begin():
        return {name: [tuple(row) for row in connection.exec_driver_sql(sql)] for name, sql in _EVERY_ROW.items()}


def _rows_of(kept: Contents, project: Project) -> Contents:
    """Those of the tables that name their project."""
    place = {name: list(Base.metadata.tables[name].columns.keys()).index(owner) for name, owner in _OWNER.items()}
    return {name: [row for row in kept[name] if row[place[name]] == project.id] for name in place}
