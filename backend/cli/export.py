"""`iwes export`: the weighted training set of a project, as a file or a folder."""

from __future__ import annotations

from pathlib import Path

import click

from backend.cli.command import JSON, PROJECT, URL, command
from backend.cli.output import console_beside, finish

FORMATS = click.Choice(["jsonl", "csv", "parquet", "imagefolder", "label-studio", "huggingface"])
WEIGHTS = click.Choice(["paper", "unbiased", "mean1", "sum-to-pool"])
STRATA = click.Choice(["labelled", "unlabelled"])
"""As `backend.exports.wish` and the store know them, which take long to import; who completes a word does not wait."""


@command("export", example="iwes export --project 1 --out training-set.jsonl")
@URL
@PROJECT
@click.option("--format", type=FORMATS, help="Default: as the suffix of --out says.")
@click.option("--weights", type=WEIGHTS, help="Which of them stand in the column weight. Default: paper.")
@click.option("--rounds", help="Only what these rounds asked for, such as 0-3,5.")
@click.option("--stratum", type=STRATA, help="Only tasks that came with a label, or that did not.")
@click.option("--subset", help="One of its subsets alone. Default: all that its models train on.")
@click.option("--as-of", help="The set as it was known at a time, such as 2026-01-31T12:00.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The file, or for some formats the folder.")
@JSON
def export(url: str | None, studio_id: int, out: Path, as_json: bool, **words: str | None) -> None:
    """Write the weighted training set of a project, connected or not.

    \b
    iwes export --project 1 --out set.jsonl
    iwes export --project 1 --format imagefolder --weights mean1 --out set

    A manifest beside it (in a folder: inside) says how every weight came about, and how to make the same again.
    """
    from backend.cli.place import known, opened
    from backend.exports.terminal import export_to

    with opened() as place:
        project = known(place, url, studio_id)
        done, manifest = export_to(place, project, words, out, console_beside(as_json))
    finish(as_json, {"rows": done.rows, "file": out, "manifest": manifest})
