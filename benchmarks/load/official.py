"""The official label-studio-ml server, started by the command of its own template."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from pathlib import Path

from backend.embedded.process import Stack
from benchmarks.load import server

COMMAND = ["--preload", "--workers", "1", "--threads", "8", "--timeout", "0"]
HERE = ["--no-control-socket"]  # else every gunicorn of this account would want the same one
APP = "benchmarks.load.official_app:create_app()"
MODELS, IMAGES = "MODEL_DIR", "LOAD_IMAGES"
"""The variables that tell the server where it keeps its models, and where the images to train on are."""


def start(stack: Stack, home: Path, images: Path) -> server.Server:
    def argv(port: int) -> list[str]:
        return [sys.executable, "-m", "gunicorn", *COMMAND, *HERE, "--bind", f"127.0.0.1:{port}", APP]

    models = home / "official"
    models.mkdir()
    env = {**os.environ, MODELS: str(models), IMAGES: str(images)}
    return server.start(stack, "official", argv, home / "logs" / "official.log", lambda _: env)


def release() -> str:
    return version("label-studio-ml")
