"""The load test: what it sends, what it calls lost, and that it comes to an end with all of its figures."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from benchmarks.load.measure import Kept
from benchmarks.load.order import Order, Outcome
from benchmarks.load.senders import send
from benchmarks.load.webhooks import CAPTURE, FIRST_ANNOTATION, FIRST_PROJECT, FIRST_TASK, Project, Webhooks, task_data
from studio.connection import SECRET_HEADER
from studio.messages import read_event

ROOT = Path(__file__).parents[2]


def webhooks(tasks: int = 100, projects: int = 1) -> Webhooks:
    asked = [Project(FIRST_PROJECT + number, f"secret-{number}") for number in range(projects)]
    return Webhooks.to("127.0.0.1:9090", SECRET_HEADER, asked, tasks, FIRST_ANNOTATION)


def body(sent: Webhooks, number: int) -> dict[str, Any]:
    head, _, text = sent.request(number).partition(b"\r\n\r\n")
    assert f"Content-Length: {len(text)}".encode() in head
    read: dict[str, Any] = json.loads(text)
    return read


def test_a_webhook_is_the_captured_one_about_another_annotation() -> None:
    captured = json.loads(CAPTURE.read_text())["requests"][0]["body"]
    sent = body(webhooks(), 3)
    for part, names in {"annotation": ("id", "task", "project"), "project": ("id",), "task": ("id", "project")}.items():
        for name in names:
            sent[part][name] = captured[part][name]
    sent["task"]["data"] = captured["task"]["data"]
    assert sent == captured


def test_webhooks_go_through_the_tasks_of_one_project_after_the_other_and_never_repeat_an_annotation() -> None:
    sent = webhooks(tasks=3, projects=2)
    events = [read_event(body(sent, number)) for number in range(8)]
    assert [event.project_id - FIRST_PROJECT for event in events] == [0, 0, 0, 1, 1, 1, 0, 0]
    assert [event.annotations[0].task_id - FIRST_TASK for event in events] == [0, 1, 2, 0, 1, 2, 0, 1]
    assert [event.annotations[0].id - FIRST_ANNOTATION for event in events] == list(range(8))
    assert [b"secret-1" in sent.request(number) for number in (2, 3)] == [False, True]


def test_a_webhook_tells_of_its_task_what_is_mirrored_already() -> None:
    event = read_event(body(webhooks(), 7))
    assert event.tasks == {FIRST_TASK + 7: dict(task_data(8))[FIRST_TASK + 7]}


def test_an_answered_webhook_that_is_not_stored_is_lost_and_one_stored_twice_is_told() -> None:
    outcome = Outcome(sent=5, taken=[0, 1, 2, 3])
    assert Kept.of([10, 11, 12, 13, 14], 10, outcome)  # the fifth was stored, but its answer did not arrive
    assert Kept.of([10, 11, 11, 13, 99], 10, outcome) == Kept(lost=1, twice=1, unknown=1)
    assert not Kept.of([10, 11, 12], 10, outcome)


def test_what_is_answered_after_a_second_or_never_is_late() -> None:
    outcome = Outcome(sent=5, unsent=2, taken=[0, 1, 2, 3], latencies=[0.1, 0.2, 1.5, 0.3])
    assert outcome.late == 1 + 1 + 2
    assert [outcome.latency(share) for share in (0.5, 1.0)] == [0.3, 1.5]


@pytest.mark.parametrize("keep_alive", [False, True])
@pytest.mark.parametrize("rate", [None, 400.0])
def test_senders_send_each_webhook_once_and_tell_which_were_answered(keep_alive: bool, rate: float | None) -> None:
    with a_server() as (port, got):
        order = Order(port, webhooks(), 20.0, rate=rate, keep_alive=keep_alive, connections=8, at_most=60)
        outcome = send(order)
    sent = [number - FIRST_ANNOTATION for number in got]
    assert sorted(sent) == list(range(60))
    assert sorted(outcome.taken) == [number for number in range(60) if number % 10 not in (3, 7)]
    assert outcome.answers == {"200": 48, "500": 6, "dropped": 6}
    assert outcome.not_taken == 12


@contextmanager
def a_server() -> Iterator[tuple[int, list[int]]]:
    """One that fails at every annotation whose number ends in 3, and hangs up at those that end in 7."""
    got: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["annotation"]["id"]
            got.append(told)
            last = (told - FIRST_ANNOTATION) % 10
            if last == 7:
                self.close_connection = True
                return
            self.send_response(500 if last == 3 else 200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server.server_port, got
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_quick_run_loses_nothing_and_has_every_figure(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.load", "--quick", "--json", str(tmp_path / "figures.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["nothing_lost"]
    measured = figures["measured"]
    assert all(one["outcome"]["sent"] for one in measured)
    assert all(one["lost"] == 0 for one in measured if one["server"] == "backend")
    assert {(one["server"], one["phase"], one["keep_alive"]) for one in measured} == {
        *(
            (server, phase, kept)
            for server in ("backend", "yardstick 1 × 64", "yardstick 2 × 32")
            for phase in ("flat out", "paced")
            for kept in (0, 1)
        ),
        ("official", "flat out", False),
        ("backend", "rounds close", False),
    }
    rows = [line for line in done.stdout.splitlines() if line.startswith("│")]
    for one in measured:
        assert any(one["server"] in row and one["phase"] in row for row in rows), done.stdout
