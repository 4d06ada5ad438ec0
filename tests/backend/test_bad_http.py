"""What is not even HTTP, or not as much of it as it says, on the web server as `iwes serve` starts it."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.settings import Settings
from tests.backend.door import Door
from tests.backend.served import serve

pytestmark = pytest.mark.slow

BODY = json.dumps({"action": "PROJECT_UPDATED", "project": {"id": 1}}).encode()
SIZE = b"%x" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked"
SECRET = b"X-IWeS-Secret: s3cret"
HEAD = (b"POST /webhook HTTP/1.1", b"Host: x", b"Connection: close", b"Content-Type: application/json")

BROKEN = {
    "cut off": (*HEAD, SECRET, b"Content-Length: 999", b"", BODY),
    "chunk cut off": (*HEAD, SECRET, CHUNKED, b"", b"fff", BODY),
    "chunk too many": (*HEAD, SECRET, CHUNKED, b"", SIZE, BODY + b"x", b"0", b"", b""),
    "no size of a chunk": (*HEAD, SECRET, CHUNKED, b"", b"zz", BODY, b"0", b"", b""),
    "negative size of a chunk": (*HEAD, SECRET, CHUNKED, b"", b"-1", BODY, b"0", b"", b""),
    "length and chunks": (*HEAD, SECRET, b"Content-Length: 5", CHUNKED, b"", b"0", b"", b""),
    "two lengths": (*HEAD, SECRET, b"Content-Length: 5", b"Content-Length: 6", b"", BODY),
    "negative length": (*HEAD, SECRET, b"Content-Length: -1", b"", BODY),
    "NUL in a header": (*HEAD, b"X-IWeS-Secret: s3cret\0", b"Content-Length: 0", b"", b""),
    "header over and over": (*HEAD, *[b"X-%d: x" % n for n in range(500)], b"", b""),
    "long header": (*HEAD, b"X-Long: " + b"x" * 100_000, b"", b""),
    "no HTTP": (b"\x16\x03\x01\x02\x00\x01\x00", b"", b""),
    "form with a broken chunk": (b"POST /login HTTP/1.1", *HEAD[1:], CHUNKED, b"", b"zz", b"token=x", b"0", b"", b""),
}
NOBODY = {
    "bytes for credentials": (*HEAD, b"Authorization: Basic \xff", b"Content-Length: 0", b"", b""),
    "bytes for credentials of a page": (b"GET / HTTP/1.1", *HEAD[1:], b"Authorization: Basic \xff", b"", b""),
    "bytes for a token": (b"GET / HTTP/1.1", *HEAD[1:], b"Authorization: Bearer \xff", b"", b""),
    "bytes for a secret": (*HEAD, b"X-IWeS-Secret: \xff\xfe", b"Content-Length: 0", b"", b""),
}


@pytest.fixture
def port(settings: Settings, door: Door, tmp_path: Path) -> Iterator[int]:
    with serve(settings, tmp_path / "log") as port:
        yield port


def answer_to(port: int, lines: tuple[bytes, ...]) -> bytes:
    """All that comes back, if anything does."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as line:
            line.sendall(b"\r\n".join(lines))
            line.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: line.recv(65536), b""))
    except ConnectionError:
        return b""


def status_of(answer: bytes) -> int:
    return int(answer.split()[1])


def test_broken_requests_are_refused_and_the_server_goes_on(port: int, door: Door) -> None:
    for name, lines in BROKEN.items():
        assert status_of(answer_to(port, lines)) in (400, 431), name
        assert door.is_untouched(), name
    for name, lines in NOBODY.items():
        assert status_of(answer_to(port, lines)) == 401, name
        assert door.is_untouched(), name
    for lines in (
        (*HEAD, SECRET, b"Content-Length: %d" % len(BODY), b"", BODY),
        (*HEAD, SECRET, CHUNKED, b"", SIZE, BODY, b"0", b"", b""),
    ):
        answer = answer_to(port, lines)
        assert status_of(answer) == 200, answer
