"""What `iwes --help` says: the commands in the order in which an admin meets them. They are loaded when called."""

from __future__ import annotations

import difflib
import logging
from importlib import import_module

import click
from click.shell_completion import CompletionItem

TOUR: dict[str, dict[str, str]] = {
    "Look around and start": {
        "doctor": "What this machine has to train with, and what is missing.",
        "up": "Start everything on one machine: Redis if none is given, web server, workers.",
        "serve": "Start the web server alone.",
        "worker": "Start a worker alone, on any host that reaches Redis and the database.",
    },
    "Put a project to work": {
        "connect": "Connect a Label Studio project: annotators get prioritised tasks from then on.",
        "set": "Change how a connected project goes on.",
        "select": "Select a weighted subset of tasks, or of images on disk, that have labels.",
    },
    "See how it goes": {
        "status": "Rounds, labels until the next training, jobs and workers.",
        "estimate": "How good the model is on what nobody has labelled, and how common each class is.",
        "reconcile": "Compare with Label Studio now, and repair every difference.",
    },
    "Take the result away": {
        "export": "Write the weighted training set to a file.",
        "disconnect": "Take back what `connect` made in Label Studio; labels and weights are kept.",
    },
    "Make it handy": {
        "completion": "Print the script that lets a shell complete commands and options.",
    },
}
MODULES = {
    **dict.fromkeys(("up", "serve", "worker"), "running"),
    **dict.fromkeys(("set", "reconcile", "disconnect"), "connected"),
}
"""In which module of this package a command is found, where that is not called like it."""

EPILOG = """\b
A first session:
  iwes up                                     (leave it running; the rest in another terminal)
  iwes connect --url http://localhost:8080 --token … --project 1
  iwes status
  iwes estimate --project 1 --target 0.95
  iwes export --project 1 --out training-set.jsonl

\b
Exit codes: 0 done · 1 a problem, named in one line on stderr · 2 a wrong call · 130 interrupted.
With --json a command prints one JSON document on stdout and nothing else.
"""


class Tour(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for commands in TOUR.values() for name in commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = import_module(f"backend.cli.{MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = getattr(module, f"{cmd_name}_" if cmd_name == "set" else cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if args and args[0] not in names and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], names, n=2, cutoff=0.6)
            meant = f"did you mean {' or '.join(f'`iwes {name}`' for name in near)}?" if near else "see `iwes --help`"
            raise click.UsageError(f"there is no command {args[0]!r}; {meant}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(len(name) for name in self.list_commands(ctx))
        for section, commands in TOUR.items():
            with formatter.section(section):
                formatter.write_dl([(name.ljust(widest), line) for name, line in commands.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """From the tour, so that a press of Tab loads nothing."""
        lines = {name: line for commands in TOUR.values() for name, line in commands.items()}
        found = [CompletionItem(name, help=line) for name, line in lines.items() if name.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]


@click.group(
    cls=Tour, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(package_name="iwes-label-studio", prog_name="iwes")
def cli() -> None:
    """Active learning for Label Studio by importance sampling.

    It decides which tasks annotators see next, trains on their labels, and tells how good the model is on what nobody
    has labelled. `iwes COMMAND --help` explains a command.

    Settings come from the environment: IWES_HOME (default .iwes), DATABASE_URL (default SQLite in the home),
    REDIS_URL (default: an embedded Redis), IWES_HOST, IWES_PORT, IWES_BACKEND_URL, IWES_IMAGE_PREFIXES, IWES_DEVICE,
    IWES_CACHE, IWES_CACHE_GB, IWES_MODELS_GB, IWES_RECONCILE_SECONDS, IWES_LOG (text or json),
    IWES_ADMIN_TOKEN (default: made once, in the home), IWES_WEB_PROCESSES.
    """
    from jobs import logs
    from jobs.settings import Settings

    logs.set_up(Settings.from_env().log, logging.WARNING)
