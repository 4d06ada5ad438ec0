"""The attacks this backend has to stand, one test or a few for each kind; `docs/security.md` lists them."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import select
from werkzeug.test import TestResponse

from backend.people import MOST_BYTES
from store.database import Store
from store.tables import Label, Project, Task
from tests.conftest import make_project
from tests.security.conftest import BEARER, BROWSER, HEADER, SECRET, TOKEN, csrf_token, webhook_body

OPEN = {"/health", "/login", "/static/<path:filename>"}


def labels_in(store: Store) -> int:
    with store.read() as session:
        return len(session.scalars(select(Label)).all())


# Getting in


def test_the_webhook_that_label_studio_makes_by_itself_shows_no_secret_and_changes_nothing(
    client: FlaskClient, project: Project, store: Store
) -> None:
    assert client.post("/webhook", json=webhook_body()).status_code == 401
    assert labels_in(store) == 0


def test_a_guessed_secret_changes_nothing_and_the_right_one_does(
    client: FlaskClient, project: Project, store: Store
) -> None:
    for guess in ("", "x", SECRET[:-1], f"{SECRET}x", "' OR 1=1 --", "é" * 43):
        shown = {"X-IWeS-Secret": guess.encode().decode("latin-1")}
        assert client.post("/webhook", json=webhook_body(), headers=shown).status_code == 401, guess
    assert labels_in(store) == 0
    assert client.post("/webhook", json=webhook_body(), headers=HEADER).status_code == 200
    assert labels_in(store) == 1


def test_every_route_but_the_open_ones_asks_for_credentials(app: Flask, client: FlaskClient, project: Project) -> None:
    """Whatever route is added is closed until somebody opens it on purpose."""
    asked = []
    for rule in app.url_map.iter_rules():
        if rule.rule in OPEN:
            continue
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}:
            path = re.sub("<.*?>", "1", rule.rule)
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Bearer {SECRET}"}, BROWSER):
                for cookie in ("", "eyJzaWduZWRfaW5fYXQiOjF9.aaaaaa.forged"):
                    client.set_cookie("iwes", cookie)
                    answer = client.open(path, method=method, headers=headers)
                    led_away = answer.status_code == 302 and answer.location.startswith("/login")
                    assert led_away or answer.status_code in (401, 429), (method, path, headers)
            asked.append(rule.rule)
    assert {"/", "/logout", "/setup", "/webhook"} <= set(asked)


def test_a_projects_secret_opens_no_page_and_the_admin_token_no_webhook(
    client: FlaskClient, project: Project, store: Store
) -> None:
    assert client.get("/", headers=HEADER).status_code == 401
    assert client.get("/", auth=("label-studio", SECRET)).status_code == 401
    assert client.post("/webhook", json=webhook_body(), headers=BEARER).status_code == 401
    assert client.post("/webhook", json=webhook_body(), headers={"X-IWeS-Secret": TOKEN}).status_code == 401
    assert labels_in(store) == 0


def test_tasks_of_another_project_cannot_be_slipped_in(client: FlaskClient, project: Project, store: Store) -> None:
    body = webhook_body()
    body["project"]["id"] = 77
    assert client.post("/webhook", json=body, headers=HEADER).status_code == 400
    with store.read() as session:
        assert len(session.scalars(select(Task)).all()) == 4


# Making somebody else do it


def test_a_page_elsewhere_cannot_send_a_form_in_a_persons_name(
    app: Flask, person: FlaskClient, sign_in: Callable[[FlaskClient], FlaskClient]
) -> None:
    of_another = csrf_token(sign_in(app.test_client()), "/")
    for form in ({}, {"csrf_token": ""}, {"csrf_token": "guessed"}, {"csrf_token": of_another}):
        assert person.post("/logout", data=form).status_code == 400, form
        assert person.get("/").status_code == 200, "still signed in"


def test_a_page_elsewhere_cannot_sign_a_person_in(client: FlaskClient) -> None:
    assert client.post("/login", data={"token": TOKEN}).status_code == 400
    assert client.get("/").status_code == 401


def test_every_form_of_ours_is_protected(app: Flask, person: FlaskClient) -> None:
    """A route that is added later, too: what a person's cookie opens takes no form without its token."""
    for rule in app.url_map.iter_rules():
        writes = (rule.methods or set()) & {"POST", "PUT", "PATCH", "DELETE"}
        if app.view_functions[rule.endpoint].__module__ != "backend.contract":
            for method in writes:
                assert person.open(re.sub("<.*?>", "1", rule.rule), method=method).status_code == 400, rule.rule


def test_no_page_can_be_framed_sniffed_or_kept(app: Flask, person: FlaskClient, project: Project) -> None:
    stranger = app.test_client()
    answers = {
        "page": person.get("/", headers=BROWSER),
        "sign-in": stranger.get("/login"),
        "json": stranger.get("/health"),
        "refused": stranger.post("/webhook"),
        "led away": stranger.get("/", headers=BROWSER),
        "not there": stranger.get("/nothing", headers=BROWSER),
        "wrong method": stranger.get("/webhook"),
        "style": stranger.get("/static/iwes.css"),
    }
    for what, answer in answers.items():
        assert "default-src 'self'" in answer.headers["Content-Security-Policy"], what
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"], what
        assert answer.headers["X-Content-Type-Options"] == "nosniff", what
        assert answer.headers["Referrer-Policy"] == "same-origin", what
        assert "Strict-Transport-Security" not in answer.headers, "not over HTTP"
        if what != "style":
            assert answer.headers["Cache-Control"] == "no-store", what
    for page in ("page", "sign-in", "not there"):
        inline = r"""<style|<script(?! src="/static/)|style=|\son\w+=|//(?!studio\.test)"""
        assert not re.search(inline, answers[page].text), "nothing inline"


def test_a_title_that_is_markup_is_shown_and_not_run(person: FlaskClient, store: Store) -> None:
    make_project(store, title="<script>alert(1)</script>", studio_id=2, secret="2")
    page = person.get("/", headers=BROWSER).text
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


# Breaking it, and what it says then


def test_a_fault_shows_no_traceback(broken: FlaskClient) -> None:
    page = broken.get("/", headers=BROWSER | BEARER)
    answers = [page, broken.get("/", headers=BEARER), broken.post("/webhook", headers=HEADER)]
    for answer in answers:
        assert answer.status_code == 500
        assert "its log says why" in answer.text
        for given_away in ("Traceback", "RuntimeError", "no such table", "File &#34;", ".py", SECRET):
            assert given_away not in answer.text
    assert page.mimetype == "text/html"
    assert answers[1].is_json
    assert answers[2].is_json


def test_mistakes_are_told_in_json_to_programs_and_on_a_page_to_people(client: FlaskClient, project: Project) -> None:
    assert client.get("/nothing").json == {"error": client.get("/nothing").json["error"]}
    assert "Nothing here" in client.get("/nothing", headers=BROWSER).text
    assert client.post("/webhook", headers=BROWSER | HEADER, json={}).is_json, "Label Studio is always told in JSON"
    assert client.get("/webhook").headers["Allow"].split(", ").count("POST") == 1


def test_a_body_made_to_break_the_reader_is_refused(client: FlaskClient, project: Project, store: Store) -> None:
    event = b'{"action": "ANNOTATION_CREATED", "project": {"id": %s}}'
    for body in (
        *(b"", b"{", b"\xff\xfe{}", b"null", b'"text"', b"[" * 100_000, b'{"a":' * 100_000, b"[" * 500 + b"]" * 500),
        *(event % (b"9" * 5_000), event % b"1e400", event % b"NaN", event % b"1", event % b'"\\ud800"'),
    ):
        answer = client.post("/webhook", data=body, headers=HEADER, content_type="application/json")
        assert answer.status_code == 400, body[:80]
        assert answer.is_json
    assert labels_in(store) == 0


def test_a_form_is_no_message(client: FlaskClient, project: Project) -> None:
    multipart = {"action": (io.BytesIO(b"x" * 1000), "x.json")}
    for sent in ({"data": multipart}, {"data": {"action": "x"}}, {"data": "{}", "content_type": "text/plain"}):
        answer: TestResponse = client.post("/webhook", headers=HEADER, **sent)  # type: ignore[arg-type]
        assert 400 <= answer.status_code < 500


def test_a_body_beyond_the_limit_is_refused(
    app: Flask, client: FlaskClient, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(app.config, "MAX_CONTENT_LENGTH", 1000)
    assert client.post("/webhook", json={"a": "x" * 1000}, headers=HEADER).status_code == 413


def test_a_form_beyond_the_limit_is_refused(client: FlaskClient) -> None:
    form = {"csrf_token": csrf_token(client), "token": "x" * MOST_BYTES}
    assert client.post("/login", data=form).status_code == 413
    parts = {f"part-{n}": (io.BytesIO(b""), "x") for n in range(1_100)}
    assert client.post("/login", data=parts).status_code == 413


def test_the_docs_name_these_tests_as_they_are_called() -> None:
    root = Path(__file__).parents[2]
    named = set(re.findall(r"`(test_\w+)`", (root / "docs" / "security.md").read_text()))
    there = {
        name for file in (root / "tests").rglob("test_*.py") for name in re.findall(r"def (test_\w+)", file.read_text())
    }
    assert named - there == set()
    assert len(named) > 40
