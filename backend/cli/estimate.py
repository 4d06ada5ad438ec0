"""`iwes estimate`: what the labels say of what nobody has labelled."""

from __future__ import annotations

import click

from backend.cli.command import JSON, PROJECT, URL, command
from backend.cli.output import console_beside, finish

SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


@command("estimate", example="iwes estimate --project 1 --target 0.95")
@URL
@PROJECT
@click.option("--half-width", type=SHARE, default=0.02, show_default=True, help="How exactly to know the accuracy.")
@click.option("--target", type=SHARE, help="The accuracy wanted: the advice says when it is surely reached.")
@JSON
def estimate(url: str | None, studio_id: int, half_width: float, target: float | None, as_json: bool) -> None:
    """Tell how good the model is on what nobody has labelled, and how common each class is, with 95 % intervals.

    The labels that a model asked for itself judge it, each by the chance it had of being asked for; no further label is
    needed. Skipped tasks and labels still to come are told beside every figure.
    """
    from backend.cli.place import known, opened
    from backend.estimates_page import show
    from jobs import estimates
    from store import projects

    with opened() as place:
        project = known(place, url, studio_id)
        with place.store.snapshot() as session:
            stored = projects.by_id(session, project.id)
            found = estimates.of_project(session, stored, half_width=half_width, target=target)
    if not as_json:
        show(found, project.title, console_beside(as_json))
    finish(as_json, {"project": studio_id, "url": project.studio_url, **found.as_dict()})
