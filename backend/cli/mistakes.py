"""How a command ends: the exit codes, and in which words a mistake is told."""

from __future__ import annotations

import sys
from typing import NoReturn

import click

from backend.cli.command import Command

DONE = 0
PROBLEM = 1
"""Named in one line on stderr."""
WRONG_CALL = 2
INTERRUPTED = 130
"""By Ctrl-C: 128 + SIGINT, as a shell would say it."""


def give_up(reason: str, code: int = PROBLEM) -> NoReturn:
    click.echo(f"iwes: {reason}", err=True)
    sys.exit(code)


def show_wrong_call(error: click.UsageError) -> NoReturn:
    """What was wrong with the call, how the command is called rightly, and where more is told."""
    command, path = (error.ctx.command, error.ctx.command_path) if error.ctx else (None, "iwes")
    click.echo(f"iwes: {_sentence(error)}", err=True)
    if isinstance(command, Command) and command.example:
        click.echo(f"For example: {command.example}", err=True)
    click.echo(f"`{path} --help` tells more.", err=True)
    sys.exit(WRONG_CALL)


def _sentence(error: click.UsageError) -> str:
    said = error.format_message().rstrip(".")
    return said[:1].lower() + said[1:]


def explained(error: Exception) -> str | None:
    """What to tell of an error that a person can do something about; None for a fault of ours. Loaded only now, and
    after whatever raised it."""
    from redis.exceptions import RedisError
    from sqlalchemy.exc import SQLAlchemyError

    if isinstance(error, _ours()):
        return str(error)
    if isinstance(error, RedisError):
        return f"Redis does not answer ({error}); check REDIS_URL, or start one with `iwes up`"
    if isinstance(error, SQLAlchemyError):
        return f"the database cannot be used: {str(error).splitlines()[0]}; check DATABASE_URL"
    if isinstance(error, OSError):
        return f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"
    return None


def _ours() -> tuple[type[Exception], ...]:
    from backend.embedded.ports import PortBusy
    from backend.embedded.process import ProcessFailed
    from backend.embedded.redis import RedisUnavailable
    from backend.exports.errors import ExportError
    from iwes import IwesError
    from jobs.dataset import DatasetError
    from jobs.settings import SettingsError
    from models.plan import PlanError
    from store.database import StoreError
    from store.projects import UnknownProject
    from store.subsets import BadSubset
    from studio.errors import StudioError

    return (
        StudioError,
        StoreError,
        UnknownProject,
        SettingsError,
        ProcessFailed,
        RedisUnavailable,
        PortBusy,
        PlanError,
        BadSubset,
        DatasetError,
        ExportError,
        IwesError,
    )
