"""People sign in with the token, stay signed in for twelve hours, and are slowed down when they guess."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from flask import Flask
from flask.testing import FlaskClient

from backend.app import create_app
from backend.people import LONG
from backend.throttle import FREE, LONGEST_SECONDS, MOST_ADDRESSES, Throttle
from jobs.settings import Settings
from tests.security.conftest import BEARER, BROWSER, TOKEN, csrf_token


def test_a_browser_is_led_to_the_sign_in_and_back_to_where_it_wanted(client: FlaskClient) -> None:
    away = client.get("/", headers=BROWSER)
    assert (away.status_code, away.location) == (302, "/login")
    page = client.get("/openapi.json?x=1", headers=BROWSER)
    assert page.location == "/login?next=/openapi.json?x%3D1"
    form = {"token": f" {TOKEN}\n", "csrf_token": csrf_token(client), "next": "/openapi.json?x=1"}
    assert client.post("/login", data=form).location == "/openapi.json?x=1"
    assert client.get("/", headers=BROWSER).status_code == 200


def test_a_program_is_told_in_json_what_to_show(client: FlaskClient) -> None:
    answer = client.get("/")
    assert answer.status_code == 401
    assert "Bearer" in answer.json["error"]
    assert answer.headers["WWW-Authenticate"] == "Bearer realm=iwes"
    assert client.get("/", headers=BEARER).status_code == 200
    assert client.get("/", headers={"Authorization": "Bearer wrong"}).status_code == 401


def test_the_cookie_is_for_this_site_alone_and_not_for_scripts(client: FlaskClient) -> None:
    form = {"token": TOKEN, "csrf_token": csrf_token(client)}
    cookie = client.post("/login", data=form).headers["Set-Cookie"]
    assert cookie.startswith("iwes=")
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert "Path=/" in cookie
    assert "Domain" not in cookie
    assert TOKEN not in cookie


def test_over_https_the_cookie_never_travels_in_the_clear(settings: Settings) -> None:
    client = create_app(replace(settings, backend_url="https://backend.example")).test_client()
    answer = client.get("/login", base_url="https://backend.example")
    assert answer.headers["Set-Cookie"].startswith("__Host-iwes=")
    assert "Secure;" in answer.headers["Set-Cookie"]
    assert answer.headers["Strict-Transport-Security"] == "max-age=31536000"


def test_people_sign_in_through_a_proxy_that_speaks_https(settings: Settings) -> None:
    client = create_app(replace(settings, backend_url="https://backend.example")).test_client()
    inside = {"base_url": "https://127.0.0.1:9090"}  # as such a proxy passes it on, with another host's name
    shown = re.search(r'name="csrf_token" value="([^"]+)"', client.get("/login", **inside).text)
    assert shown is not None
    form = {"token": TOKEN, "csrf_token": shown[1]}
    answer = client.post("/login", data=form, headers={"Referer": "https://backend.example/login"}, **inside)
    assert answer.status_code == 302
    assert client.get("/", **inside).status_code == 200


def test_another_process_with_the_same_token_knows_the_cookie_and_one_with_another_does_not(
    settings: Settings, person: FlaskClient
) -> None:
    cookie = person.get_cookie("iwes")
    assert cookie is not None
    for token, status in ((TOKEN, 200), ("another-token-of-these-tests", 401)):
        other = create_app(replace(settings, admin_token=token)).test_client()
        other.set_cookie("iwes", cookie.value)
        assert other.get("/").status_code == status


def test_the_cookie_ends_after_twelve_hours(person: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    assert person.get("/").status_code == 200
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 12 * 3600 - 60)
    assert person.get("/").status_code == 200
    monkeypatch.setattr(time, "time", lambda: now + 12 * 3600 + 1)
    assert person.get("/").status_code == 401


def test_who_signs_out_is_out(person: FlaskClient) -> None:
    assert person.post("/logout", data={"csrf_token": csrf_token(person, "/")}).location == "/login"
    assert person.get("/").status_code == 401


def test_a_session_planted_before_the_sign_in_is_gone_after_it(
    client: FlaskClient, sign_in: Callable[[FlaskClient], FlaskClient]
) -> None:
    before = csrf_token(client)
    sign_in(client)
    assert client.post("/logout", data={"csrf_token": before}).status_code == 400


def test_nobody_is_led_elsewhere_after_signing_in(client: FlaskClient) -> None:
    elsewhere = [
        "//evil.test",
        "https://evil.test",
        "/\\evil.test",
        "/\t/evil.test",
        "\\\\evil.test",
        "javascript:alert(1)",
    ]
    for target in elsewhere:
        form = {"token": TOKEN, "csrf_token": csrf_token(client), "next": target}
        assert client.post("/login", data=form).location == "/", target
        client.delete_cookie("iwes")


def test_whoever_guesses_has_to_wait_and_a_short_token_is_not_looked_at_meanwhile(app: Flask) -> None:
    guesser = app.test_client()
    form = {"csrf_token": csrf_token(guesser)}
    for _ in range(FREE):
        assert guesser.post("/login", data=form | {"token": "x" * 20}).status_code == 401
    answer = guesser.post("/login", data=form | {"token": TOKEN}, headers=BROWSER)
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) >= 1
    assert "too many wrong tokens" in answer.text
    assert guesser.get("/", headers=BEARER).status_code == 429, "by the other door neither"
    elsewhere = {"REMOTE_ADDR": "192.0.2.7"}
    assert guesser.get("/", headers=BEARER, environ_overrides=elsewhere).status_code == 200


def test_a_long_token_is_let_in_at_once_whoever_guesses_at_the_same_address(settings: Settings) -> None:
    """Behind a proxy everybody comes from one address."""
    token = "t" * LONG
    client = create_app(replace(settings, admin_token=token)).test_client()
    wrong = {"Authorization": f"Bearer {'x' * LONG}"}
    refused = [client.get("/", headers=wrong).status_code for _ in range(FREE + 3)]
    assert refused == [401] * FREE + [429] * 3
    assert client.get("/", headers={"Authorization": f"Bearer {token}"}).status_code == 200
    assert client.post("/login", data={"token": token, "csrf_token": csrf_token(client)}).status_code == 302


def test_a_person_who_is_signed_in_is_not_shut_out_by_one_who_guesses(app: Flask, person: FlaskClient) -> None:
    guesser = app.test_client()
    for _ in range(2 * FREE):
        guesser.get("/", headers={"Authorization": "Bearer wrong"})
    assert person.get("/").status_code == 200


def test_the_wait_doubles_up_to_a_minute_and_ends_with_the_right_token() -> None:
    now = 0.0
    throttle = Throttle(clock=lambda: now)
    waits = []
    for _ in range(FREE + 8):
        throttle.wrong("a")
        waits.append(throttle.seconds_left("a"))
    assert waits == [0] * (FREE - 1) + [1, 2, 4, 8, 16, 32, 60, 60, 60]
    now += LONGEST_SECONDS
    assert throttle.seconds_left("a") == 0
    throttle.right("a")
    throttle.wrong("a")
    assert throttle.seconds_left("a") == 0


def test_no_number_of_addresses_fills_the_memory() -> None:
    throttle = Throttle()
    for number in range(MOST_ADDRESSES + 500):
        throttle.wrong(str(number))
    assert len(throttle._guesses) == MOST_ADDRESSES
