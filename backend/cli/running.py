"""`iwes up`, `iwes serve` and `iwes worker`: what runs until it is stopped."""

from __future__ import annotations

import click

from backend.cli.command import command


@command("up", example="iwes up")
def up() -> None:
    """Start everything this backend needs on one machine: Redis if none is given, web server, worker."""
    from backend.up import up as start_all
    from jobs.settings import Settings

    start_all(Settings.from_env())


@command("serve", example="iwes serve")
def serve() -> None:
    """Start the web server alone."""
    from backend.serve import serve as start
    from jobs.settings import Settings

    start(Settings.from_env())


@command("worker", example="iwes worker --queue gpu")
@click.option("--queue", "names", multiple=True, type=click.Choice(["studio", "gpu"]), help="Default: both.")
@click.option("--burst", is_flag=True, help="Stop when there is nothing left to do.")
def worker(names: tuple[str, ...], burst: bool) -> None:
    """Start a worker; as many as there are GPUs may run, on any host that reaches Redis and the database."""
    from jobs.settings import Settings
    from jobs.worker import run

    run(Settings.from_env(), names or ("studio", "gpu"), burst=burst)
