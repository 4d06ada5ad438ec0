"""The `iwes` command. Each of its commands is loaded when it is called: `iwes --help` needs nothing but click."""

from __future__ import annotations

import sys

import click

from backend.cli.mistakes import DONE, INTERRUPTED, explained, give_up, show_wrong_call
from backend.cli.tour import cli

__all__ = ["cli", "main"]


def main() -> None:
    """Ends the process with one of the documented exit codes; a mistake is told in a line, never as a traceback."""
    try:
        code = cli.main(prog_name="iwes", standalone_mode=False)
    except click.UsageError as error:
        show_wrong_call(error)
    except click.ClickException as error:
        give_up(error.format_message(), error.exit_code)
    except click.Abort:
        give_up("interrupted", INTERRUPTED)
    except Exception as error:
        reason = explained(error)
        if reason is None:
            raise
        give_up(reason)
    sys.exit(code if isinstance(code, int) else DONE)
