"""Logs of every process, in one form: who said what when, and which project, round, job or request it was about.

Whoever begins a job, a request or a tick says so once, with `about`; every line until its end then carries it, whoever
writes it, libraries included. `IWES_LOG=json` makes each line an object for `jq`; the default is a line to read.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TextIO

FACTS = ("project", "round", "subset", "job", "request")

Facts = Mapping[str, str | int]

_about: ContextVar[Facts] = ContextVar("about", default=MappingProxyType({}))

_JOB = re.compile(r"project-(?P<project>\d+)(?:-(?P<subset>.+?))??(?:-round-(?P<round>\d+))?-[a-z]+(?:-[fg])?")
_SECRETS = re.compile(
    r"(?P<address>://)[^/\s@]+(?=@)"  # the user and password of an address
    r"|(?P<scheme>\b(?:token|bearer|basic)\s+)[\w.~+/=-]{16,}"  # as the header Authorization has it
    r"|(?P<pair>(?:token|secret|password|signature|credential|apikey|api_key)['\"]?\s*[=:]\s*['\"]?)[^\s&'\",}]+",
    re.IGNORECASE,
)


def set_up(form: str, level: int = logging.INFO) -> None:
    """Sends what this process and its children log to stderr. May be called again."""
    handler = _Stderr()
    handler.setFormatter(_Json() if form == "json" else Text())
    root = logging.getLogger()
    for former in [each for each in root.handlers if isinstance(each, _Stderr)]:
        root.removeHandler(former)
    root.addHandler(handler)
    root.setLevel(level)
    logging.captureWarnings(True)
    if form == "json":  # where Python's own way to tell of an error, on many lines, could not be read
        sys.excepthook = lambda kind, error, trace: logging.critical("it failed", exc_info=(kind, error, trace))
        threading.excepthook = lambda told: logging.error("a thread failed", exc_info=told.exc_value)


@contextmanager
def about(**facts: str | int | None) -> Iterator[None]:
    """What all lines until the end of this block are about, besides what they were about already."""
    token = learn(**facts)
    try:
        yield
    finally:
        forget(token)


def learn(**facts: str | int | None) -> Token[Facts]:
    """From here on lines are about this too, until `forget` is called with the token of this or of an earlier call."""
    return _about.set({**_about.get(), **{name: fact for name, fact in facts.items() if fact is not None}})


def known() -> Facts:
    """What lines are about here and now, to be told where it is gone on with: `about(**known())`."""
    return _about.get()


def forget(token: Token[Facts]) -> None:
    _about.reset(token)


def of_job(job_id: str) -> dict[str, str | int | None]:
    """What a job is about, told by its id, which is made of exactly that."""
    found = _JOB.fullmatch(job_id)
    if found is None:
        return {"job": job_id}
    project, round_ = found["project"], found["round"]
    return {"project": int(project), "round": round_ and int(round_), "subset": found["subset"], "job": job_id}


class _Stderr(logging.StreamHandler[TextIO]):
    """To whatever stderr is at the moment; a handler of the standard library keeps the one it was made with."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return sys.stderr


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        message, more = _said(self, record)
        line = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": message,
            **_facts(record),
            "process": record.process,
            **({"exception": more} if more else {}),
        }
        return json.dumps(line, ensure_ascii=False, default=str)


class Text(logging.Formatter):
    """A line to read; what follows its first is indented."""

    def format(self, record: logging.LogRecord) -> str:
        message, more = _said(self, record)
        facts = " ".join(f"{name}={fact}" for name, fact in _facts(record).items())
        line = f"{_time(record)} {record.levelname} {record.name}{f' [{facts}]' if facts else ''} {message}"
        return "\n    ".join([line, *more.splitlines()])


def _said(formatter: logging.Formatter, record: logging.LogRecord) -> tuple[str, str]:
    """The message, on one line, and the traceback, which RQ writes below its message. What follows a line break never
    looks like a line of its own, so nobody can forge one; what looks like a secret is left out, though none should get
    as far as here."""
    message, _, more = record.getMessage().strip().partition("\n")
    if record.exc_info and record.exc_info[0] is not None:
        more = f"{more}\n{formatter.formatException(record.exc_info)}".strip()
    return without_secrets(message.replace("\r", " ")), without_secrets(more)


def _facts(record: logging.LogRecord) -> dict[str, str | int]:
    known = _about.get()
    said = {name: getattr(record, name, None) or known.get(name) for name in FACTS}
    return {name: fact for name, fact in said.items() if fact is not None}


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def without_secrets(text: str) -> str:
    """For whatever is shown or kept though others wrote it, such as the words of an error."""
    return _SECRETS.sub(lambda found: f"{found[found.lastgroup or 0]}…", text)
