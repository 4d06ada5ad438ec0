"""Serves the application with gunicorn."""

from __future__ import annotations

import atexit
from typing import Any

from flask import Flask
from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger

from backend.admin_token import admin_token, check_reach
from backend.app import create_app
from backend.web_worker import WebWorker
from jobs import logs
from jobs.settings import Settings

THREADS = 64
"""Downloads and streams to open pages keep a thread for as long as they last."""
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


class Server(BaseApplication):  # type: ignore[misc]
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        super().__init__()

    def load_config(self) -> None:
        options: dict[str, Any] = {
            "bind": self._settings.address,
            "workers": processes(self._settings),
            "threads": THREADS,
            "worker_class": WebWorker,
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
