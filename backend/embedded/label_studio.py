"""A real Label Studio as a child of ours: own environment, own data folder, reachable from this machine only."""

from __future__ import annotations

import json
import os
import urllib.request
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from backend.embedded.ports import PortBusy, require_free
from backend.embedded.process import Process, Stack

START_SECONDS = 240.0
LOCK_SECONDS = 900

# Label Studio looks every setting up under its bare name too (HOST, PORT, PASSWORD, DEBUG …) and would send webhooks
# for this machine through a proxy: nothing else of our environment is handed down.
INHERITED = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH")

QUIET = {
    "COLLECT_ANALYTICS": "false",
    "LATEST_VERSION_CHECK": "false",
    "SENTRY_DSN": "",
    "FRONTEND_SENTRY_DSN": "",
    "LOG_LEVEL": "WARNING",
    "PYTHONUNBUFFERED": "1",
}


@dataclass(frozen=True)
class LabelStudio:
    executable: Path
    data: Path
    """Database, uploads and the private HOME."""
    port: int
    files_root: Path
    """Images are served from folders strictly below it that a local-files storage row covers."""
    email: str
    password: str
    token: str
    """The admin's legacy token: up to 40 characters. All three count only when the user is first created."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def environment(self) -> dict[str, str]:
        return base_environment(self.data) | {
            "LABEL_STUDIO_HOST": self.url,
            "LABEL_STUDIO_USERNAME": self.email,
            "LABEL_STUDIO_PASSWORD": self.password,
            "LABEL_STUDIO_USER_TOKEN": self.token,
            "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
            "LOCAL_FILES_SERVING_ENABLED": "true",
            "LOCAL_FILES_DOCUMENT_ROOT": str(self.files_root),
            # A backend on this machine is allowed; the cloud's metadata addresses stay shut.
            "USE_DEFAULT_BANNED_SUBNETS": "false",
            "USER_ADDITIONAL_BANNED_SUBNETS": "169.254.0.0/16",
            "TASK_LOCK_TTL": str(LOCK_SECONDS),
            # Without it each import of predictions recounts every task of the project.
            "fflag_fix_back_4620_memory_efficient_predictions_import_08012025_short": "true",
        }

    def process(self, log: Path) -> Process:
        argv = [str(self.executable), "start", "--no-browser", "--internal-host", "127.0.0.1", "--port", str(self.port)]
        # A busy port is an error: it would silently take the next one.
        free = partial(require_free, self.port, "Label Studio")
        return Process("label-studio", argv, log, self.environment(), before=free)


def base_environment(data: Path) -> dict[str, str]:
    """What any Label Studio command needs; HOME is private because it always writes there."""
    home = data / "home"
    home.mkdir(parents=True, exist_ok=True)
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    place = {"HOME": str(home), "DJANGO_DB": "sqlite", "LABEL_STUDIO_BASE_DATA_DIR": str(data)}
    return inherited | QUIET | place


def start_label_studio(stack: Stack, studio: LabelStudio, log: Path) -> Process:
    """Start it; `await_label_studio` says when it is ready."""
    return stack.start(studio.process(log))


def await_label_studio(process: Process, studio: LabelStudio) -> None:
    """Return once it answers. Should another program have taken the port meanwhile, that one is not taken for ours."""
    process.wait_until(lambda: version_at(studio.url) is not None, START_SECONDS, "it answered")
    if not _knows(studio):
        raise PortBusy(f"port {studio.port} is answered by another Label Studio, which does not know our admin's token")


def version_at(url: str) -> str | None:
    """The version of the Label Studio at an address, or None while it is not up."""
    try:
        if _get(f"{url}/health").get("status") != "UP":
            return None
        return str(_get(f"{url}/api/version")["release"])
    except (OSError, ValueError, KeyError):
        return None


def _knows(studio: LabelStudio) -> bool:
    try:
        return _get(f"{studio.url}/api/current-user/whoami", studio.token).get("email") == studio.email
    except (OSError, ValueError):
        return False


def _get(address: str, token: str | None = None) -> dict[str, object]:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    direct.addheaders = [("Authorization", f"Token {token}")] if token else []
    with direct.open(address, timeout=5) as answer:
        found = json.load(answer)
    return found if isinstance(found, dict) else {}
