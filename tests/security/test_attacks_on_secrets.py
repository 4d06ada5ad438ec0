"""Nobody learns a secret by looking over the backend's shoulder: at its pages, answers, logs and errors."""

from __future__ import annotations

import logging

import pytest
from flask.testing import FlaskClient

from jobs.images.reasons import shown
from jobs.settings import Settings, SettingsError
from store.database import Store
from store.tables import Project
from studio.client import tidy_url
from studio.errors import StudioError
from tests.conftest import make_project
from tests.security.conftest import BROWSER, HEADER, SECRET, TOKEN, csrf_token, webhook_body


def test_no_secret_is_logged_or_shown(client: FlaskClient, project: Project, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    form = {"csrf_token": csrf_token(client)}
    answers = [
        client.post("/webhook", json=webhook_body(), headers=HEADER),
        client.post("/webhook", data=b"{", headers=HEADER),
        client.post("/setup", auth=("label-studio", SECRET)),
        client.post("/setup", auth=("label-studio", "a-secret-that-is-not-it")),
        client.post("/login", data=form | {"token": "a-token-that-is-not-it"}, headers=BROWSER),
        client.get("/", headers={"Authorization": "Bearer a-token-that-is-not-it"}),
        client.post("/login", data=form | {"token": TOKEN}),
    ]
    assert [answer.status_code for answer in answers] == [200, 415, 200, 401, 401, 401, 302]
    told = caplog.text + "".join(answer.text + str(answer.headers) for answer in answers)
    for secret in (TOKEN, SECRET, "a-token-that-is-not-it", "a-secret-that-is-not-it", project.token):
        assert secret not in told


def test_the_page_shows_no_token_of_label_studio_and_no_secret(person: FlaskClient, project: Project) -> None:
    page = person.get("/", headers=BROWSER).text
    assert project.title in page
    for secret in (project.secret, project.token, TOKEN):
        assert secret not in page


def test_settings_and_projects_are_printed_without_what_they_keep_secret(project: Project) -> None:
    env = {
        "IWES_ADMIN_TOKEN": TOKEN,
        "DATABASE_URL": "postgresql://iwes:pa55word@db/iwes",
        "REDIS_URL": "redis://:pa55word@redis/0",
    }
    printed = repr(Settings.from_env(env)) + str(Settings.from_env(env)) + repr(project)
    for secret in (TOKEN, "pa55word", SECRET, project.token):
        assert secret not in printed


def test_a_redis_password_that_breaks_its_address_is_not_shown() -> None:
    with pytest.raises(SettingsError, match="REDIS_URL cannot be read") as refused:
        Settings.from_env({"REDIS_URL": "redis://:pa55#word@redis:6379/0"})
    assert "pa55" not in str(refused.value)


def test_an_error_of_the_database_does_not_show_what_was_written(store: Store, project: Project) -> None:
    with pytest.raises(Exception, match=r"(?i)unique") as refused:
        make_project(store, studio_id=99, secret=SECRET)
    assert SECRET not in str(refused.value)
    assert "t" * 40 not in str(refused.value)


def test_an_address_with_a_password_in_it_is_not_taken() -> None:
    for refuse in (tidy_url, lambda url: Settings.from_env({"IWES_BACKEND_URL": url})):
        with pytest.raises((StudioError, SettingsError), match="names a user or a password") as refused:
            refuse("https://me:pa55word@studio.test:8080/")
        assert "pa55word" not in str(refused.value)


def test_a_reason_shows_neither_a_password_nor_a_signature_of_an_images_address() -> None:
    for address, said in {
        "https://me:pa55word@a.example/1.png": "https://…@a.example/1.png",
        "https://a.example/1.png?X-Amz-Signature=pa55word": "https://a.example/1.png?…",
        "sftp://me:pa55word@a.example/1.png": "sftp://…@a.example/1.png",
        "/data/local-files/?d=a/1.png": "/data/local-files/?d=a/1.png",
    }.items():
        assert shown(address) == said
