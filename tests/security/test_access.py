"""Label Studio's calls: known by the secret they show, without asking the database each time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient
from sqlalchemy import event

from backend.access import TRUSTED_SECONDS, Callers
from store import projects
from store.database import Store
from store.tables import Project
from tests.conftest import make_project
from tests.security.conftest import SECRET


class Clock:
    now = 100.0
    looks = 0

    def __call__(self) -> float:
        self.looks += 1
        self.now += 1e-6
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def callers(store: Store, clock: Clock) -> Callers:
    return Callers(store, clock=clock)


@pytest.fixture
def statements(store: Store) -> Iterator[list[str]]:
    """What the database is asked."""
    asked: list[str] = []

    def note(*arguments: object) -> None:
        asked.append(str(arguments[2]))

    event.listen(store.engine, "before_cursor_execute", note)
    yield asked
    event.remove(store.engine, "before_cursor_execute", note)


def test_a_known_caller_is_known_without_asking_the_database(
    callers: Callers, project: Project, statements: list[str]
) -> None:
    assert callers.project(SECRET) is not None
    statements.clear()
    for _ in range(100):
        found = callers.project(SECRET)
        assert found is not None
        assert found.id == project.id
    assert statements == []


def test_a_project_connected_a_moment_ago_is_known_at_once(callers: Callers, project: Project, store: Store) -> None:
    assert callers.project(SECRET) is not None
    later = make_project(store, studio_id=2, secret="another", connected=False, before={"sampling": "x"})
    found = callers.project("another")
    assert found is not None, "Label Studio calls /setup while connecting is still under way"
    assert found.id == later.id


def test_a_secret_that_was_changed_is_refused_after_two_seconds_at_most(
    callers: Callers, project: Project, store: Store, clock: Clock
) -> None:
    assert callers.project(SECRET) is not None
    with store.write() as session:
        projects.lock(session, project.id).secret = "the next one"
    clock.now += TRUSTED_SECONDS
    assert callers.project(SECRET) is None
    assert callers.project("the next one") is not None


def test_a_known_caller_is_read_again_alone_however_many_projects_there_are(
    callers: Callers, project: Project, store: Store, clock: Clock, statements: list[str]
) -> None:
    for number in range(2, 5):
        make_project(store, studio_id=number, secret=f"secret {number}")
    assert callers.project(SECRET) is not None
    clock.now += 2 * TRUSTED_SECONDS
    statements.clear()
    assert callers.project(SECRET) is not None
    assert [said.count("project.id =") for said in statements if "FROM project" in said] == [1]
    assert callers.project("secret 4") is not None


def test_a_disconnected_project_is_no_caller_but_one_being_disconnected_is(callers: Callers, store: Store) -> None:
    make_project(store, secret="half", connected=False, before={"sampling": "Sequential sampling"})
    make_project(store, studio_id=2, secret="gone", connected=False)
    assert callers.project("half") is not None
    assert callers.project("gone") is None


def test_many_who_are_unknown_at_once_wait_for_one_who_reads(
    callers: Callers, project: Project, clock: Clock, statements: list[str]
) -> None:
    assert callers.project("nobody") is None
    statements.clear()
    with callers._reading:
        before = clock.looks
        threads = [threading.Thread(target=callers.project, args=("nobody",)) for _ in range(20)]
        for thread in threads:
            thread.start()
        while clock.looks < before + 20:
            time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert len([said for said in statements if said.startswith("SELECT")]) == 1


def test_what_the_digest_leads_to_is_compared_in_constant_time(
    callers: Callers, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []
    monkeypatch.setattr("hmac.compare_digest", lambda *both: compared.append(both))
    assert callers.project(SECRET) is None
    assert compared == [(SECRET, SECRET)]
    assert callers.project(SECRET) is None
    assert compared == [(SECRET, SECRET)] * 2, "also with what was known already"


def test_a_malformed_or_wrong_header_is_refused(client: FlaskClient, project: Project) -> None:
    for shown in ("", " ", "ä" * 43, "x" * 10_000, f"{SECRET}x", SECRET[:-1], SECRET.upper()):
        answer = client.post("/setup", headers={"X-IWeS-Secret": shown.encode().decode("latin-1")})
        assert answer.status_code == 401, shown
        assert SECRET not in answer.text


def test_only_basic_authentication_shows_a_secret(client: FlaskClient, project: Project) -> None:
    for shown in ("Basic", "Basic !!!", "Basic AAAA", f"Bearer {SECRET}", f'Digest password="{SECRET}"'):
        assert client.post("/setup", headers={"Authorization": shown}).status_code == 401, shown
