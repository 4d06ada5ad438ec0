"""A person who is signed in, and a project with a round of each kind behind it."""

from __future__ import annotations

import base64
import io

import pytest
from PIL import Image

from jobs.workplace import Workplace
from store import pool, rounds
from store.database import Store
from store.tables import Model, Project, RoundState
from tests.conftest import a_label, add_round, make_project, put_label
from tests.jobs.conftest import busy, redis_url
from tests.security.conftest import app, client, person, settings, sign_in

__all__ = ["app", "busy", "client", "person", "redis_url", "settings", "sign_in"]


@pytest.fixture
def project(store: Store, place: Workplace) -> Project:
    """Two classes, 30 tasks; a seed round that was trained on, and a round of its model that has 3 of its 4 labels."""
    project = make_project(store, tasks=30, classes=["cat", "dog"])
    add_round(store, project, 0, [1, 2, 3, 4, 5, 6], wanted=4)
    for task in range(1, 5):
        put_label(store, project, task, a_label(task, "cat" if task % 2 else "dog"))
    with store.write() as session:
        trained = rounds.by_number(session, project, 0)
        rounds.trained(session, project, trained, Model(version="iwes-0", examples=4, metrics={}))
    add_round(store, project, 1, list(range(11, 17)), wanted=4)
    with store.write() as session:
        last = rounds.by_number(session, project, 1)
        last.model_version, last.examined, last.pool_size = "iwes-0", 12, 24
        for draw in last.draws:
            draw.predicted = "cat"
    for task, class_name in ((11, "cat"), (12, "dog"), (13, "cat")):
        put_label(store, project, task, a_label(task, class_name))
    return project


def set_image(store: Store, project: Project, task: int, address: str) -> None:
    with store.write() as session:
        pool.by_studio_id(session, project, [task])[task].data = {"image": address}


def red_picture() -> str:
    content = io.BytesIO()
    Image.new("RGB", (40, 20), "red").save(content, "PNG")
    return "data:image/png;base64," + base64.b64encode(content.getvalue()).decode()


def set_state(store: Store, project: Project, number: int, state: RoundState) -> None:
    with store.write() as session:
        rounds.by_number(session, project, number).state = state
