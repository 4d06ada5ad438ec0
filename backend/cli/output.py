"""Where a command's words go: to people, or beside the one JSON document that programs asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console


def say_beside(as_json: bool) -> Callable[[str], None]:
    """For what is told on the way. Stdout is the document's alone."""
    return lambda line: click.echo(line, err=as_json)


def console_beside(as_json: bool) -> Console:
    from rich.console import Console

    return Console(stderr=as_json)


def finish(as_json: bool, document: Any, *lines: str) -> None:
    """The outcome: the document for programs, the lines for people."""
    from backend.plain import plain

    if as_json:
        click.echo(json.dumps(plain(document), ensure_ascii=False, allow_nan=False, indent=2))
    for line in lines if not as_json else ():
        click.echo(line)
