"""Webhooks that are answered many at a time by one thread, on the web server as `iwes serve` starts it."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread

import pytest
import requests
from flask import Flask, Response
from gunicorn.config import Config
from gunicorn.glogging import Logger
from gunicorn.http import get_parser
from gunicorn.workers.gthread import TConn
from sqlalchemy import select, text

from backend import web_worker
from backend.app import BUSY_SECONDS, create_app
from backend.serve import THREADS
from backend.web_worker import READ_AT_ONCE, TOGETHER_SECONDS, WebWorker, still_to_come
from jobs.settings import Settings
from store import projects
from store.database import Store
from store.tables import Label, Project
from tests.backend.served import serve
from tests.conftest import add_round, make_project

CAPTURE = json.loads((Path(__file__).parent.parent / "captures" / "webhook_ANNOTATION_CREATED.json").read_text())
TASKS = 200
SECRET = "s3cret"


def a_webhook(annotation: int = 1, *, secret: str = SECRET, more: str = "") -> bytes:
    """The captured one about another annotation, of the task with the same number."""
    body = json.loads(json.dumps(CAPTURE["requests"][0]["body"]))
    body["annotation"] |= {"id": annotation, "task": annotation}
    body["task"]["id"] = annotation
    content = json.dumps(body)
    head = f"POST /webhook HTTP/1.1\r\nHost: x\r\nX-IWeS-Secret: {secret}\r\nContent-Type: application/json\r\n"
    return f"{head}{more}Content-Length: {len(content)}\r\n\r\n{content}".encode()


def test_a_webhook_is_whole_when_its_last_byte_has_come() -> None:
    whole = a_webhook()
    head = whole.index(b"\r\n\r\n") + 4
    assert still_to_come(whole) == 0
    for heard in range(len(whole)):
        missing = still_to_come(whole[:heard])
        assert missing is not None, heard
        assert 0 < missing <= len(whole) - heard
        if heard >= head:
            assert missing == len(whole) - heard


@pytest.mark.parametrize(
    "said",
    [
        b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /webhooks HTTP/1.1\r\n\r\n",
        b"POST /webhook?x=1 HTTP/1.1\r\n\r\n",
        a_webhook() + a_webhook(2),
        a_webhook(more="Content-Length: 3\r\n"),
        a_webhook().replace(b"\r\n\r\n", b"\r\nContent-Length: 3\r\n\r\n"),
        a_webhook(more="Transfer-Encoding: chunked\r\n"),
        a_webhook(more="expect: 100-continue\r\n"),
        b"POST /webhook HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /webhook HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /webhook HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % READ_AT_ONCE,
        b"POST /webhook HTTP/1.1\r\nX: " + b"x" * READ_AT_ONCE,
        b"\x16\x03\x01\x02\x00",
        b'POST /webhook HTTP/1.1\r\nContent-Length: 27\r\n\r\n{"action":"START_TRAINING"}',
    ],
)
def test_whatever_is_not_one_small_webhook_gets_a_thread_of_its_own(said: bytes) -> None:
    assert still_to_come(said) is None


@pytest.mark.parametrize(
    "said", [b"G", b"GET /login HTTP/1.1\r\nHost: x\r\n", b"POST /predict HTTP/1.1\r\n", b"GET / HTTP/1.1\nHost: x\n\n"]
)
def test_a_head_that_is_not_whole_waits_without_a_thread(said: bytes) -> None:
    assert still_to_come(said) == 1


def a_worker(app: Flask | None = None) -> WebWorker:
    config = Config()
    worker = WebWorker(0, 0, [], None, 0, config, Logger(config))
    worker.method_queue.init()
    worker._webhooks, worker._clerk_rests = SimpleQueue(), Event()
    worker.wsgi = app or Flask("nothing")
    return worker


def hand_over(worker: WebWorker, said: bytes) -> socket.socket:
    """The other end of a connection on which a whole webhook has come."""
    ours, theirs = socket.socketpair()
    conn = TConn(worker.cfg, ours, ("127.0.0.1", 1), ("127.0.0.1", 2))
    conn.parser = get_parser(conn.cfg, ours, conn.client)
    conn.parser.unreader.unread(said)
    worker._to_clerk(conn)
    return theirs


def test_a_store_that_is_slow_to_say_who_calls_keeps_the_first_waiting_for_few_others() -> None:
    app, begun = Flask("slow"), []

    @app.post("/webhook")
    def webhook() -> dict[str, str]:
        begun.append(1)
        time.sleep(TOGETHER_SECONDS)
        return {}

    worker = a_worker(app)
    with ExitStack() as lines:
        waiting = [lines.enter_context(hand_over(worker, a_webhook(number))) for number in range(1, 6)]
        worker._answer_together()
        assert waiting[0].recv(100).startswith(b"HTTP/1.1 200")
        assert len(begun) == 1


def test_many_guessed_secrets_have_the_projects_read_once(
    settings: Settings, store: Store, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To read them takes longer than a webhook, and whoever guesses need not be known to anybody."""
    app, read = create_app(settings), []
    all_known = projects.all_known
    monkeypatch.setattr(projects, "all_known", lambda session: read.append(1) or all_known(session))
    monkeypatch.setattr(web_worker, "TOGETHER_SECONDS", 60)
    worker = a_worker(app)
    with ExitStack() as lines:
        waiting = [
            lines.enter_context(hand_over(worker, a_webhook(number, secret=f"guessed {number}")))
            for number in range(32)
        ]
        worker._answer_together()
        assert {line.recv(100)[:12] for line in waiting} == {b"HTTP/1.1 401"}
        assert len(read) == 1
        with hand_over(worker, a_webhook(40, secret="guessed later")) as line:
            worker._answer_together()
            assert line.recv(100).startswith(b"HTTP/1.1 401")
        assert len(read) == 2, "it may be the secret of a project connected since"


def test_an_answer_that_breaks_off_is_followed_by_no_other() -> None:
    app = Flask("broken")

    @app.post("/webhook")
    def webhook() -> Response:
        def parts() -> Iterator[bytes]:
            yield b"begun"
            raise RuntimeError

        return Response(parts())

    worker = a_worker(app)
    with hand_over(worker, a_webhook()) as line:
        worker._answer_together()
        said = b"".join(iter(lambda: line.recv(65536), b""))
    assert said.count(b"HTTP/1.1 ") == 1
    assert said.startswith(b"HTTP/1.1 200")


def test_a_worker_told_to_end_while_it_starts_ends_quietly() -> None:
    worker = a_worker()
    del worker.wsgi
    worker.handle_exit(signal.SIGTERM, None)
    assert not worker.alive


def test_what_the_clerk_has_in_hand_is_finished_before_the_worker_quits() -> None:
    app, done = Flask("slow"), []

    @app.post("/webhook")
    def webhook() -> dict[str, str]:
        time.sleep(0.3)
        done.append(1)
        return {}

    worker = a_worker(app)
    worker.tpool = ThreadPoolExecutor(1)
    with hand_over(worker, a_webhook()):
        Thread(target=worker._work, daemon=True).start()
        with pytest.raises(SystemExit):
            worker.handle_quit(signal.SIGQUIT, None)
    assert done == [1]


@pytest.mark.slow
def test_a_body_that_does_not_come_is_not_awaited_for_ever(
    settings: Settings, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_worker, "BODY_SECONDS", 1)
    worker = a_worker(create_app(settings))
    ours, theirs = socket.socketpair()
    conn = TConn(worker.cfg, ours, ("127.0.0.1", 1), ("127.0.0.1", 2))
    conn.parser, conn.initialized = get_parser(conn.cfg, ours, conn.client), True
    conn.parser.unreader.unread(a_webhook()[:-5])
    with theirs:
        worker.handle(conn)
        said = b"".join(iter(lambda: theirs.recv(65536), b""))
    assert said.startswith(b"HTTP/1.1 400"), said
    assert b"the body breaks off" in said


def test_a_client_that_takes_no_answer_is_cut_off() -> None:
    """Nobody may keep the one thread that answers all webhooks."""
    ours, theirs = socket.socketpair()
    conn = TConn(Config(), ours, ("127.0.0.1", 1), ("127.0.0.1", 2))
    conn.parser = get_parser(conn.cfg, ours, conn.client)
    conn.parser.unreader.unread(a_webhook())
    with theirs:
        with suppress(BlockingIOError):
            while True:
                ours.send(b"answers that were not read")
        worker, kept = WebWorker(0, 0, [], None, 0, conn.cfg, Logger(conn.cfg)), []
        worker.wsgi = Flask("nothing")
        assert list(worker._exchange(conn, time.monotonic(), kept)) == [None]
        assert kept == []
        assert ours.fileno() == -1, "it is still open"


def test_a_worker_whose_clerk_fails_makes_room_for_another() -> None:
    worker = a_worker()

    class Broken:
        def get(self) -> None:
            raise MemoryError

    worker._webhooks = Broken()
    assert worker.alive
    with pytest.raises(MemoryError):
        worker._work()
    assert not worker.alive


@pytest.fixture
def project(store: Store) -> Project:
    project = make_project(store, tasks=TASKS, control="cls", target="img", classes=["cat", "dog", "bird"])
    add_round(store, project, 0, list(range(1, TASKS + 1)), wanted=TASKS)
    return project


@pytest.fixture
def port(settings: Settings, project: Project, tmp_path: Path) -> Iterator[int]:
    with serve(replace(settings, web_processes=1), tmp_path / "log") as port:
        yield port


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def an_answer(line: socket.socket) -> tuple[int, dict[str, object]]:
    """The next one, whole: its status and what it says."""
    received = b""
    while b"}" not in received:
        got = line.recv(65536)
        assert got, f"the connection was closed after {received!r}"
        received += got
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def stored(store: Store) -> set[int]:
    with store.read() as session:
        return set(session.scalars(select(Label.annotation_id)))


OK = (200, {"status": "ok"})


@pytest.mark.slow
def test_webhooks_are_stored_however_their_bytes_arrive(port: int, store: Store) -> None:
    with connected(port) as line:  # several on one connection; in one piece, and as Label Studio's client sends it
        for number in (1, 2, 3):
            line.sendall(a_webhook(number))
            assert an_answer(line) == OK
        head, ends, body = a_webhook(4).partition(b"\r\n\r\n")
        line.sendall(head + ends)
        time.sleep(0.2)
        line.sendall(body)
        assert an_answer(line) == OK
    with connected(port) as line:  # head and body far apart, on a connection that was nearly given up
        line.sendall(a_webhook(11))
        assert an_answer(line) == OK
        time.sleep(1.5)
        head, ends, body = a_webhook(12).partition(b"\r\n\r\n")
        line.sendall(head + ends)
        time.sleep(1.5)
        line.sendall(body)
        assert an_answer(line) == OK
    with connected(port) as line:  # byte by byte
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in a_webhook(5):
            line.sendall(bytes([byte]))
        assert an_answer(line) == OK
    with connected(port) as line:  # two at once
        line.sendall(a_webhook(6) + a_webhook(7))
        assert an_answer(line)[0] == 200
    with connected(port) as line:  # one that asks whether it may
        line.sendall(a_webhook(8, more="Expect: 100-continue\r\n"))
        assert line.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert an_answer(line) == OK
    with connected(port) as line:  # refused, and the connection is as good as before
        line.sendall(a_webhook(9, secret="guessed"))
        assert an_answer(line)[0] == 401
        line.sendall(a_webhook(10))
        assert an_answer(line) == OK
    assert stored(store) == {*range(1, 13)} - {9}


@pytest.mark.slow
def test_one_that_is_refused_among_many_is_the_only_one(port: int, store: Store) -> None:
    with ExitStack() as lines:
        open_lines = {number: lines.enter_context(connected(port)) for number in range(1, 101)}
        for number, line in open_lines.items():
            line.sendall(a_webhook(number, secret=SECRET if number % 10 else "guessed"))
        statuses = {number: an_answer(line)[0] for number, line in open_lines.items()}
    assert statuses == {number: 200 if number % 10 else 401 for number in open_lines}
    assert stored(store) == {number for number in open_lines if number % 10}


@pytest.mark.slow
def test_others_are_answered_while_webhooks_wait_for_a_locked_store(port: int, store: Store) -> None:
    if not store.is_sqlite:
        pytest.skip("PostgreSQL has no lock for all of it")
    with ExitStack() as lines:
        with store.write() as session:
            session.execute(text("UPDATE project SET title = 'locked'"))
            waiting = [lines.enter_context(connected(port)) for _ in range(1, 41)]
            for number, line in enumerate(waiting, start=1):
                line.sendall(a_webhook(number))
            for _ in range(5):
                assert requests.get(f"http://127.0.0.1:{port}/login", timeout=BUSY_SECONDS / 2).ok
            assert stored(store) == set()
        for line in waiting:
            assert an_answer(line) == OK
    assert stored(store) == set(range(1, 41))


@pytest.mark.slow
def test_clients_that_never_end_their_request_keep_no_webhook_waiting(port: int, store: Store) -> None:
    """Nor a page: until their head is there they have no thread. With a body that never ends they have all there are,
    and somebody else does not get a page for that."""
    with ExitStack() as lines:
        for _ in range(THREADS + 6):
            lines.enter_context(connected(port)).sendall(b"GET /login HTTP/1.1\r\nHost: x\r\n")
        assert requests.get(f"http://127.0.0.1:{port}/login", timeout=10).ok
        for _ in range(THREADS + 6):
            head = b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
            lines.enter_context(connected(port)).sendall(head + b"Content-Length: 9\r\n\r\n")
        with pytest.raises(requests.Timeout):
            requests.get(f"http://127.0.0.1:{port}/login", timeout=1)
        with connected(port) as line:
            for number in range(1, 11):
                line.sendall(a_webhook(number))
                assert an_answer(line) == OK
    assert stored(store) == set(range(1, 11))


@pytest.mark.slow
def test_what_a_client_sends_before_it_goes_is_stored(port: int, store: Store) -> None:
    """Label Studio waits a second and goes; its label is no less a label."""
    for number in range(1, 21):
        with connected(port) as line:
            line.sendall(a_webhook(number))
    deadline = time.monotonic() + 30
    while stored(store) != set(range(1, 21)):
        assert time.monotonic() < deadline, stored(store)
        time.sleep(0.1)
