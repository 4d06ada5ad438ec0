"""A real web server that answers each path as a test wants it to."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

import trustme

Answer = Callable[[BaseHTTPRequestHandler], None]


class WebHost:
    """What it answers by path, and what it was asked for under which name."""

    def __init__(self, *, at: str = "127.0.0.1", port: int = 0, authority: trustme.CA | None = None) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[tuple[str, str]] = []
        host = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                host.asked.append((self.headers["Host"], self.path))
                host.answers.get(self.path, status(404))(self)

            def log_message(self, *_: object) -> None: ...

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None: ...  # clients that hang up are part of the tests

        self._server = Server((at, port), Handler)
        self.port: int = self._server.server_port
        self.url = f"http{'s' if authority else ''}://{at}:{self.port}"
        if authority is not None:
            trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            authority.issue_cert("localhost").configure_cert(trust)
            self._server.socket = trust.wrap_socket(self._server.socket, server_side=True)

    @property
    def paths(self) -> list[str]:
        return [path for _, path in self.asked]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def file(content: bytes, **headers: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(content)

    return answer


def status(code: int) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        handler.end_headers()

    return answer


def redirect(target: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", target)
        handler.end_headers()

    return answer
