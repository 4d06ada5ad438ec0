"""Serves the application with gunicorn."""

from __future__ import annotations

from typing import Any

from flask import Flask
from gunicorn.app.base import BaseApplication

from backend.app import create_app
from jobs.settings import Settings

WORKERS = 2
THREADS = 8
PREDICT_SECONDS = 120
"""Label Studio waits 100 s for a prediction."""


class Server(BaseApplication):  # type: ignore[misc]
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        super().__init__()

    def load_config(self) -> None:
        options: dict[str, Any] = {
            "bind": f"{self._settings.host}:{self._settings.port}",
            "workers": WORKERS,
            "threads": THREADS,
            "worker_class": "gthread",
            "timeout": PREDICT_SECONDS,
            "graceful_timeout": 10,
            "proc_name": "iwes",
            "control_socket_disable": True,
        }
        for name, value in options.items():
            if name in self.cfg.settings:
                self.cfg.set(name, value)

    def load(self) -> Flask:
        """Called in each worker after the fork, so that no connection is shared between processes."""
        app = create_app(self._settings)
        app.extensions["predictors"].warm_up()
        return app


def serve(settings: Settings) -> None:
    Server(settings).run()
