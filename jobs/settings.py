"""Where this installation keeps things and whom it talks to, read once from the environment."""

from __future__ import annotations

import hashlib
import math
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

REDIS_SCHEMES = ("redis://", "rediss://", "unix://")
LOG_FORMS = ("text", "json")
TOKEN_SIGNS = 16
"""An admin token has at least as many."""


class SettingsError(ValueError):
    """A setting that cannot be used; the message names the variable and what it should hold."""


@dataclass(frozen=True)
class Settings:
    home: Path
    """Checkpoints, pre-trained weights, caches, logs, and the SQLite file where no DATABASE_URL is given."""
    database_url: str = field(repr=False)  # it and the next may hold a password
    redis_url: str = field(repr=False)
    redis_is_embedded: bool
    """True where no REDIS_URL is given: `iwes up` then starts a Redis of our own behind `redis_url`."""
    host: str
    port: int
    backend_url: str
    """The address under which Label Studio reaches this backend."""
    image_prefixes: tuple[str, ...] = ()
    """Where images may be fetched from besides the connected Label Studio."""
    device: str = "auto"
    reconcile_seconds: int = 300
    cache: Path | None = None
    """Where decoded images and descriptions lie, if not in the home: on a disk of this host's own, where many hosts
    share a home over the network."""
    cache_gigabytes: float = 8.0
    """Half of it for the images of one size, half for the descriptions by one backbone."""
    models_gigabytes: float = 10.0
    """For the checkpoints of a project; beyond it the oldest lose their weights."""
    admin_token: str | None = field(default=None, repr=False)
    """What people show to get in, if the environment says it; else it lies in a file of the home."""
    log: str = "text"
    """How log lines look: to read, or as JSON."""
    web_processes: int = 0
    """That answer requests; 0 for as many as suit the store."""

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> Settings:
        env = os.environ if env is None else env
        home = Path(env.get("IWES_HOME") or ".iwes").resolve()
        host = env.get("IWES_HOST") or "127.0.0.1"
        port = _port(env.get("IWES_PORT") or "9090")
        redis_url = _redis(env.get("REDIS_URL") or "")
        return cls(
            home=home,
            database_url=env.get("DATABASE_URL") or f"sqlite:///{home / 'store.db'}",
            redis_url=redis_url or f"unix://{runtime_folder(home) / 'redis.sock'}",
            redis_is_embedded=not redis_url,
            host=host,
            port=port,
            backend_url=_web_address(env.get("IWES_BACKEND_URL") or f"http://{_in_url(host)}:{port}"),
            image_prefixes=tuple(part for part in (env.get("IWES_IMAGE_PREFIXES") or "").replace(",", " ").split()),
            device=env.get("IWES_DEVICE") or cls.device,
            reconcile_seconds=int(_number(env, "IWES_RECONCILE_SECONDS", cls.reconcile_seconds, least=10)),
            cache=Path(env["IWES_CACHE"]).resolve() if env.get("IWES_CACHE") else None,
            cache_gigabytes=_number(env, "IWES_CACHE_GB", cls.cache_gigabytes, least=0.5),
            models_gigabytes=_number(env, "IWES_MODELS_GB", cls.models_gigabytes, least=0.1),
            admin_token=_token(env.get("IWES_ADMIN_TOKEN") or ""),
            log=_log_form(env.get("IWES_LOG") or cls.log),
            web_processes=int(_number(env, "IWES_WEB_PROCESSES", 0, least=0)),
        )

    def as_env(self) -> dict[str, str]:
        """The variables that make a child process read these same settings."""
        env = {
            "IWES_HOME": str(self.home),
            "DATABASE_URL": self.database_url,
            "IWES_HOST": self.host,
            "IWES_PORT": str(self.port),
            "IWES_BACKEND_URL": self.backend_url,
            "IWES_IMAGE_PREFIXES": " ".join(self.image_prefixes),
            "IWES_DEVICE": self.device,
            "IWES_RECONCILE_SECONDS": str(self.reconcile_seconds),
            "IWES_CACHE": str(self.cache or ""),
            "IWES_CACHE_GB": str(self.cache_gigabytes),
            "IWES_MODELS_GB": str(self.models_gigabytes),
            "IWES_ADMIN_TOKEN": self.admin_token or "",
            "IWES_LOG": self.log,
            "IWES_WEB_PROCESSES": str(self.web_processes or ""),
        }
        if not self.redis_is_embedded:
            env["REDIS_URL"] = self.redis_url
        return env

    def at(self, backend_url: str) -> Settings:
        return replace(self, backend_url=_web_address(backend_url))

    @property
    def address(self) -> str:
        """Where the web server listens."""
        return f"{_in_url(self.host)}:{self.port}"

    @property
    def models_folder(self) -> Path:
        return self.home / "models"

    @property
    def image_cache(self) -> Path:
        return (self.cache or self.home) / "images"

    @property
    def features_folder(self) -> Path:
        return (self.cache or self.home) / "features"

    @property
    def exports_folder(self) -> Path:
        """Exports that are being downloaded."""
        return (self.cache or self.home) / "exports"

    @property
    def weights_folder(self) -> Path:
        """Pre-trained weights: downloaded once, or put there by hand."""
        return self.home / "weights"

    @property
    def shelf_bytes(self) -> int:
        """What decoded images may take, and what descriptions may."""
        return int(self.cache_gigabytes * 2**30 / 2)


def runtime_folder(home: Path) -> Path:
    """A short private folder for sockets: a socket's path may hold only about 100 characters, a home many more."""
    digest = hashlib.sha256(str(home).encode()).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"iwes-{os.getuid()}-{digest}"


def check_token(token: str, where: str) -> str:
    """A token that nobody guesses and every header can carry. Raises SettingsError, which does not show it."""
    if not token.isascii() or not token.isprintable() or " " in token:
        raise SettingsError(f"{where} holds a blank or a sign that is not ASCII; letters, digits and - _ will do")
    if len(token) < TOKEN_SIGNS:
        raise SettingsError(
            f"{where} has {len(token)} characters; give {TOKEN_SIGNS} or more that nobody guesses: openssl rand -hex 32"
        )
    return token


def _web_address(text: str) -> str:
    """One that names a user would show the password wherever the address is shown."""
    if "@" in text.partition("://")[2].partition("/")[0]:
        raise SettingsError("IWES_BACKEND_URL names a user or a password in front of its host; leave them out")
    return text.rstrip("/")


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _token(text: str) -> str | None:
    return check_token(text, "IWES_ADMIN_TOKEN") if text else None


def _redis(text: str) -> str:
    if text and not text.startswith(REDIS_SCHEMES):
        raise SettingsError(f"REDIS_URL is not a Redis address; it begins with {', '.join(REDIS_SCHEMES)}")
    try:
        urlsplit(text).port  # noqa: B018 - to look is to check
    except ValueError:  # which shows what it took for the port: with a # or / in a password, a part of that
        raise SettingsError("REDIS_URL cannot be read; in its password write # as %23 and / as %2F") from None
    return text


def _number(env: Mapping[str, str], name: str, default: float, *, least: float) -> float:
    text = env.get(name) or str(default)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value < math.inf:
        raise SettingsError(f"{name} is {text!r}; give a number of at least {least:g}")
    return value


def _log_form(text: str) -> str:
    if text in LOG_FORMS:
        return text
    raise SettingsError(f"IWES_LOG is {text!r}; give one of {', '.join(LOG_FORMS)}")


def _port(text: str) -> int:
    if text.isdigit() and 0 < int(text) < 65536:
        return int(text)
    raise SettingsError(f"IWES_PORT is {text!r}; give a port number between 1 and 65535")
