"""The token people show to get in: from the environment, or made once and kept in a file of the home."""

from __future__ import annotations

import ipaddress
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from jobs.settings import Settings, SettingsError, check_token

FILE = "admin-token"
_LONGEST = 4096
_PRIVATE = stat.S_IRWXG | stat.S_IRWXO


def admin_token(settings: Settings) -> str:
    """The token in force. Several processes that start at once all get the same one. Raises SettingsError."""
    if settings.admin_token is not None:
        return settings.admin_token
    path = token_file(settings)
    try:
        if not path.exists():
            _make(path)
        return _read(path)
    except OSError as error:
        raise SettingsError(
            f"the admin token cannot be kept in {path}: {error.strerror}; set IWES_ADMIN_TOKEN, or IWES_HOME to a "
            "folder of yours"
        ) from error


def token_file(settings: Settings) -> Path:
    return settings.home / FILE


def sign_in_hint(settings: Settings) -> str:
    """Tells people where to sign in, and never the token itself: what is printed ends up in logs."""
    where = "IWES_ADMIN_TOKEN" if settings.admin_token is not None else f"the file {token_file(settings)}"
    return f"sign in at {settings.backend_url}/login with the token in {where}"


def check_reach(settings: Settings) -> None:
    """Whoever lets others on the network reach the backend must have chosen its token. Raises SettingsError."""
    if settings.admin_token is None and not _is_loopback(settings.host):
        raise SettingsError(
            f"IWES_HOST is {settings.host}, which others on the network can reach, and IWES_ADMIN_TOKEN is not set; "
            "set it to a secret of your own (openssl rand -hex 32 makes one), or listen on 127.0.0.1"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _make(path: Path) -> None:
    """Whole before it has its name, which only one process can give; the others then read what that one wrote."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial = path.with_name(f".{FILE}.{secrets.token_hex(8)}.partial")
    descriptor = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{secrets.token_urlsafe(32)}\n")
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(partial, path)
    finally:
        partial.unlink()


def _read(path: Path) -> str:
    with path.open("rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise SettingsError(f"{path} is not a file; remove it, and a new admin token is made")
        if found.st_mode & _PRIVATE:
            raise SettingsError(
                f"{path} can be read by others; remove it to get a new token, or chmod 600 it if nobody has seen it"
            )
        token = file.read(_LONGEST).decode(errors="replace").strip()
    if not token:
        raise SettingsError(f"{path} is empty; remove it, and a new admin token is made")
    return check_token(token, str(path))
