"""Tokens: the kind is read off the token; a personal access token buys short-lived ones."""

from __future__ import annotations

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
import requests

from studio.client import tidy_url
from studio.credentials import LegacyToken, PersonalAccessToken, credential
from studio.errors import BadToken, Unreachable


def jwt(**claims: object) -> str:
    part = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"e30.{part}.sig"


def test_the_kind_of_a_token_is_read_off_it() -> None:
    assert isinstance(credential("a" * 40), LegacyToken)
    assert isinstance(credential(jwt(token_type="refresh")), PersonalAccessToken)
    assert isinstance(credential(jwt(token_type="access")), LegacyToken)


@pytest.mark.parametrize("token", ["", "  ", "two words", "söß"])
def test_a_token_that_cannot_be_one_is_refused_at_once(token: str) -> None:
    with pytest.raises(BadToken, match="copy it from Label Studio"):
        credential(token)


@pytest.mark.parametrize("apart", [0, -7200, 7200])
def test_an_access_token_is_renewed_in_time_whatever_label_studios_clock_says(
    monkeypatch: pytest.MonkeyPatch, apart: int
) -> None:
    """Its clock and ours are hours apart; the token lives five minutes by either."""
    sold = [jwt(iat=1_000_000 + apart, exp=1_000_300 + apart, n=n) for n in range(3)]

    class Sells(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"access": sold.pop(0)}).encode())

        def log_message(self, *_: object) -> None: ...

    token, clock = PersonalAccessToken("refresh"), {"now": 50.0}
    monkeypatch.setattr("studio.credentials.time", SimpleNamespace(monotonic=lambda: clock["now"], time=lambda: 1e6))
    with ThreadingHTTPServer(("127.0.0.1", 0), Sells) as server, requests.Session() as session:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        headers = []
        for clock["now"] in (50, 200, 289, 291, 500):
            headers.append(token.header(session, f"http://127.0.0.1:{server.server_port}", 5))
        server.shutdown()
    assert headers[0] == headers[1] == headers[2] != headers[3] == headers[4]


@pytest.mark.parametrize("url", ["", "label-studio:8080", "ftp://host", "http://"])
def test_an_address_that_cannot_be_one_is_refused_at_once(url: str) -> None:
    with pytest.raises(Unreachable, match="not a web address"):
        tidy_url(url)
