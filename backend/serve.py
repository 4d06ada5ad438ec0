"""Serves the application with gunicorn."""

from __future__ import annotations

import atexit
from concurrent.futures import Future
from socket import MSG_PEEK, socket
from types import FrameType
from typing import Any

from flask import Flask
from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger
from gunicorn.workers.gthread import TConn, ThreadWorker

from backend.admin_token import admin_token, check_reach
from backend.app import create_app
from jobs import logs
from jobs.settings import Settings

THREADS = 64
"""Webhooks that wait in a process are written together, so it pays to let many in; waiting costs them nothing."""
PREDICT_SECONDS = 120
"""Label Studio waits 100 s for a prediction."""


def processes(settings: Settings) -> int:
    """One writes to SQLite at a time, and who waits for that sleeps for longer and longer: a second process would not
    take in more labels than the first, but less, and keep some waiting for seconds. PostgreSQL lets them queue."""
    return settings.web_processes or (1 if settings.database_url.startswith("sqlite") else 2)


class _Logger(Logger):  # type: ignore[misc]
    """gunicorn's own lines, in the form of all others."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        for own in (self.error_log, self.access_log):
            own.handlers.clear()
            own.propagate = True


class _Worker(ThreadWorker):  # type: ignore[misc]
    """gunicorn's own, whose one thread that accepts connections never waits for a client. Left to itself that thread
    closes them too, and listens for up to 2 s whether the other side closes first; meanwhile nobody is let in."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Ends the streams to open pages; they would be waited for until the patience is over."""
        self.wsgi.extensions["live"].close()
        super().handle_exit(sig, frame)

    def handle(self, conn: TConn) -> object:
        kept = super().handle(conn)
        if kept:
            return kept
        conn.close(graceful=True)
        return _CLOSED

    def finish_request(self, conn: TConn, future: Future[object]) -> None:
        if not future.cancelled() and future.exception() is None and future.result() is _CLOSED:
            self.nr_conns -= 1
        else:
            super().finish_request(conn, future)

    def on_client_socket_readable(self, conn: TConn, client: socket) -> None:
        """A kept connection that the client has ended needs no thread, and no waiting."""
        if _has_ended(client):
            self.poller.unregister(client)
            self.keepalived_conns.remove(conn)
            self.nr_conns -= 1
            conn.close()
        else:
            super().on_client_socket_readable(conn, client)


_CLOSED = object()
"""Told by the thread that handled a request and closed its connection."""


def _has_ended(client: socket) -> bool:
    try:
        return client.recv(1, MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


class Server(BaseApplication):  # type: ignore[misc]
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        super().__init__()

    def load_config(self) -> None:
        options: dict[str, Any] = {
            "bind": self._settings.address,
            "workers": processes(self._settings),
            "threads": THREADS,
            "worker_class": _Worker,
            "timeout": PREDICT_SECONDS,
            "graceful_timeout": 10,
            "proc_name": "iwes",
            "logger_class": _Logger,
            "control_socket_disable": True,
        }
        for name, value in options.items():
            if name in self.cfg.settings:
                self.cfg.set(name, value)

    def load(self) -> Flask:
        """Called in each worker after the fork, so that no connection is shared between processes."""
        app = create_app(self._settings)
        app.extensions["predictors"].warm_up()
        redis, tally = app.extensions["workplace"].redis, app.extensions["tally"]
        tally.flush_forever(redis)
        atexit.register(tally.flush, redis)
        return app


def serve(settings: Settings) -> None:
    check_reach(settings)
    admin_token(settings)  # made, or found to be unusable, before there are processes that need it
    logs.set_up(settings.log)
    Server(settings).run()
