"""The backend as it is started: what gunicorn takes, what it logs, and where it refuses to listen."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from backend.admin_token import admin_token, token_file
from backend.embedded.ports import any_free
from backend.embedded.process import Process, Stack
from jobs.settings import Settings
from store.database import open_store
from tests.conftest import make_project
from tests.security.conftest import SECRET

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-c", "from backend.cli import main; main()"]
LIMIT = 64 * 2**20
START_SECONDS = 120


@dataclass(frozen=True)
class Server:
    settings: Settings
    process: Process

    @property
    def log(self) -> str:
        return self.process.log.read_text()

    def answer_to(self, *parts: bytes) -> bytes:
        """What it says to a request sent as these bytes, which need not be HTTP."""
        with socket.create_connection((self.settings.host, self.settings.port), timeout=60) as line:
            try:
                for part in parts:
                    line.sendall(part)
            except (BrokenPipeError, ConnectionResetError):
                pass  # it has said no already
            try:
                return line.recv(65536)
            except ConnectionResetError:
                return b""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """`iwes serve`, without a Redis."""
    home = tmp_path_factory.mktemp("home")
    home.chmod(0o700)
    env = {"IWES_HOME": str(home), "IWES_PORT": str(any_free()), "REDIS_URL": "redis://:pa55word@127.0.0.1:1/0"}
    settings = Settings.from_env(env)
    store = open_store(settings.database_url)
    make_project(store, secret=SECRET)
    store.close()
    with Stack() as stack:
        process = Process("serve", [*COMMAND, "serve"], home / "serve.log", {**os.environ, **settings.as_env()})
        stack.start(process)
        process.wait_until(lambda: _answers(settings), START_SECONDS, "it answered")
        yield Server(settings, process)


def _answers(settings: Settings) -> bool:
    try:
        return requests.get(f"http://{settings.address}/login", timeout=1).status_code == 200
    except requests.RequestException:
        return False


def test_a_body_without_a_length_ends_at_the_limit(server: Server) -> None:
    head = f"POST /webhook HTTP/1.1\r\nHost: x\r\nX-IWeS-Secret: {SECRET}\r\nContent-Type: application/json\r\n"
    megabyte = b"100000\r\n" + b'"' + b"x" * (2**20 - 1) + b"\r\n"
    chunks = [megabyte] * (LIMIT // 2**20 + 1)
    answer = server.answer_to(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode(), *chunks, b"0\r\n\r\n")
    # Werkzeug reads no more than the limit and hands over what it has, which is then no whole message.
    assert answer.startswith((b"HTTP/1.1 413", b"HTTP/1.1 400")), answer[:200]


def test_a_length_beyond_the_limit_is_refused_before_a_byte_is_read(server: Server) -> None:
    head = f"POST /webhook HTTP/1.1\r\nHost: x\r\nX-IWeS-Secret: {SECRET}\r\nContent-Type: application/json\r\n"
    answer = server.answer_to(f"{head}Content-Length: {LIMIT + 1}\r\nConnection: close\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 413"), answer[:200]


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 64 + b"\r\n\r\n",
        b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX-IWeS-Secret: " + b"s" * 20_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: 1\r\n" % n for n in range(200)) + b"\r\n",
        b"POST /setup HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /",
        b"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    ],
    ids=["tls", "long path", "long header", "many headers", "two lengths", "negative length"],
)
def test_what_is_no_sound_request_is_refused(server: Server, sent: bytes) -> None:
    answer = server.answer_to(sent)
    assert answer == b"" or 400 <= int(answer.split()[1]) < 500, answer[:200]
    assert b"Traceback" not in answer
    assert _answers(server.settings)


def test_clients_that_keep_their_end_open_keep_nobody_out(server: Server) -> None:
    """gunicorn listens for 2 s whether such a client closes; one after the other that would be a minute."""
    asked = b"GET /login HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with ExitStack() as open_ends:
        for _ in range(30):
            line = open_ends.enter_context(socket.create_connection((server.settings.host, server.settings.port)))
            line.sendall(asked)
        assert requests.get(f"http://{server.settings.address}/login", timeout=20).status_code == 200


def test_nothing_that_gives_access_is_in_the_log(server: Server) -> None:
    token = admin_token(server.settings)
    url = f"http://{server.settings.address}"
    assert requests.get(url, headers={"Authorization": f"Bearer {token}"}, timeout=30).status_code == 200
    requests.get(url, headers={"Authorization": "Bearer a-token-that-is-not-it"}, timeout=30)
    requests.post(f"{url}/webhook", headers={"X-IWeS-Secret": SECRET}, json={}, timeout=30)
    requests.post(f"{url}/setup", auth=("label-studio", SECRET), timeout=30)
    for secret in (token, "a-token-that-is-not-it", SECRET, "t" * 40, "pa55word"):
        assert secret not in server.log
    assert token_file(server.settings).read_text().strip() == token


@pytest.mark.parametrize("command", ["serve", "up"])
def test_without_a_token_of_ones_own_it_refuses_to_listen_on_more_than_loopback(command: str, tmp_path: Path) -> None:
    env = {**os.environ, "IWES_HOME": str(tmp_path / "home"), "IWES_HOST": "0.0.0.0", "IWES_PORT": str(any_free())}  # noqa: S104
    env.pop("IWES_ADMIN_TOKEN", None)
    ended = subprocess.run([*COMMAND, command], env=env, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 1
    assert ended.stderr.startswith("iwes: IWES_HOST is 0.0.0.0")
    assert "IWES_ADMIN_TOKEN" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "home").exists()


def test_the_container_asks_for_a_token() -> None:
    assert "IWES_HOST=0.0.0.0" in (ROOT / "Dockerfile").read_text()
    assert "IWES_ADMIN_TOKEN: ${IWES_ADMIN_TOKEN:?" in (ROOT / "docker-compose.yml").read_text()
