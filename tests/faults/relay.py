"""What stands between Label Studio and the backend: it loses, doubles and delays webhooks, and counts them."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import requests

DROPPED, DOUBLED, DELAYED = 0.20, 0.05, 0.05
DELAY_SECONDS = (1.0, 6.0)
ANSWER_SECONDS = 120
NOT_PASSED_ON = {"host", "connection", "content-length", "accept-encoding", "transfer-encoding"}


class Relay:
    """An HTTP relay in front of a backend. A webhook that is dropped never reaches it; one that is delayed is
    acknowledged at once and arrives behind later ones."""

    def __init__(self, target: str, seed: int) -> None:
        self.target = target
        self.faulty = threading.Event()
        """Until set, every request is passed on as it is."""
        self.counts: Counter[str] = Counter()
        self.told: set[int] = set()
        """The annotations of whose making the backend was told in time: it acknowledged the webhook."""
        self._random = random.Random(seed)  # noqa: S311
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def fate(self) -> str:
        """What becomes of the next webhook."""
        with self._lock:
            self.counts["sent"] += 1
            chance = self._random.random()
            if not self.faulty.is_set():
                return "passed on"
            for fate, share in (("dropped", DROPPED), ("doubled", DOUBLED), ("delayed", DELAYED)):
                chance -= share
                if chance < 0:
                    self.counts[fate] += 1
                    return fate
            return "passed on"

    def delay(self) -> float:
        with self._lock:
            return self._random.uniform(*DELAY_SECONDS)

    def pass_on(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        """The backend's answer; 502 while it is down."""
        try:
            answer = requests.request(method, self.target + path, data=body, headers=headers, timeout=ANSWER_SECONDS)
        except requests.RequestException:
            return 502, b'{"error": "the backend is down"}'
        return answer.status_code, answer.content

    def webhook(self, headers: dict[str, str], body: bytes, *, in_time: bool = True) -> tuple[int, bytes]:
        status, content = self.pass_on("POST", "/webhook", headers, body)
        with self._lock:
            if status >= 400:
                self.counts["not taken"] += 1
            elif in_time:
                self.told |= _annotations_made(body)
        return status, content


def _annotations_made(body: bytes) -> set[int]:
    event: dict[str, Any] = json.loads(body)
    return {event["annotation"]["id"]} if event.get("action") == "ANNOTATION_CREATED" else set()


def _handler(relay: Relay) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name: value for name, value in self.headers.items() if name.lower() not in NOT_PASSED_ON}
            if (self.command, self.path) != ("POST", "/webhook"):
                self._answer(*relay.pass_on(self.command, self.path, headers, body))
                return
            fate = relay.fate()
            if fate == "dropped":
                self.close_connection = True
                self.connection.close()
                return
            if fate == "delayed":
                timer = threading.Timer(relay.delay(), relay.webhook, (headers, body), {"in_time": False})
                timer.daemon = True
                timer.start()
                self._answer(200, b"{}")
                return
            if fate == "doubled":
                relay.webhook(headers, body)
            self._answer(*relay.webhook(headers, body))

        do_POST = do_PATCH = do_DELETE = do_GET

        def _answer(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except OSError:  # Label Studio was killed, or would not wait any longer
                self.close_connection = True

        def log_message(self, *_: object) -> None: ...

    return Handler
