"""One command, with an example of how it is called; and what the commands' options have in common."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


class Command(click.Command):
    """Its help ends with the example, and so does the answer to a wrong call."""

    def __init__(self, *args: Any, example: str = "", **more: Any) -> None:
        self.example = example
        super().__init__(*args, **more)
        self.epilog = f"Example: {example}" if example else None


def command(name: str, *, example: str = "") -> Callable[[Callable[..., Any]], Command]:
    return click.command(name, cls=Command, example=example)


URL = click.option(
    "--url", envvar="LABEL_STUDIO_URL", help="Label Studio's address. Default: the one whose projects are connected."
)
PROJECT = click.option("--project", "studio_id", type=int, required=True, help="The project's id in Label Studio.")
JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout, and nothing else.")
OUT = click.option("--out", type=click.Path(path_type=Path), help="A .jsonl, .csv or .parquet file.")
MODES = click.Choice(["auto", "ent", "dis", "loss"])
RULES = click.Choice(["ent", "margin"])
SUBSET_RULES = click.Choice(["dis", "loss"])
"""Named here once more, so that help and completion need not load the store; a test compares."""
