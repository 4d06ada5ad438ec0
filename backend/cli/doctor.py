"""`iwes doctor`: what this machine has to train with, and what is missing."""

from __future__ import annotations

import click

from backend.cli.command import JSON, command
from backend.cli.mistakes import PROBLEM
from backend.cli.output import console_beside, finish


@command("doctor", example="iwes doctor")
@JSON
def doctor(as_json: bool) -> None:
    """Show what this machine has to train with, and what is missing.

    Ends with exit code 1 where something stands in the way of training.
    """
    from backend.doctor import examine, show
    from jobs.settings import Settings

    found = examine(Settings.from_env())
    if not as_json:
        show(found, console_beside(as_json))
    finish(as_json, found)
    if not found.sound:
        click.get_current_context().exit(PROBLEM)
