"""`iwes export`: the weighted training set of a project, as a file."""

from __future__ import annotations

from pathlib import Path

import click

from backend.cli.command import JSON, OUT, PROJECT, URL, command
from backend.cli.output import finish


@command("export", example="iwes export --project 1 --out training-set.jsonl")
@URL
@PROJECT
@click.option("--subset", "name", help="One of its subsets alone. Default: all that its models train on.")
@OUT
@JSON
def export(url: str | None, studio_id: int, name: str | None, out: Path | None, as_json: bool) -> None:
    """Write the weighted training set of a project, connected or not, to a file."""
    from backend.cli.place import known, opened
    from backend.export import export as write
    from store import subsets

    if out is None:
        raise click.UsageError("--out is needed: a .jsonl, .csv or .parquet file")
    with opened() as place:
        project = known(place, url, studio_id)
        with place.store.read() as session:
            subset = subsets.named(session, project, name) if name else None
        count = write(place, project, subset, out)
    finish(as_json, {"rows": count, "file": out}, f"{count} rows written to {out}")
