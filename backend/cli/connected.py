"""`iwes set`, `iwes reconcile` and `iwes disconnect`: what is done to a project that is connected."""

from __future__ import annotations

import click

from backend.cli.command import JSON, MODES, PROJECT, URL, command
from backend.cli.output import finish


@command("set", example="iwes set --project 1 --mode ent")
@URL
@PROJECT
@click.option("--mode", type=MODES, required=True, help="Which tasks rounds are drawn from.")
@JSON
def set_(url: str | None, studio_id: int, mode: str, as_json: bool) -> None:
    """Change how a connected project goes on.

    \b
    auto  unlabelled tasks by IWeS-ent for annotators, and tasks that came with
          a label by IWeS-dis without anybody; when no task is left to ask
          annotators for, only the latter
    ent   unlabelled tasks only; labels that were there already train as they are
    dis   tasks that came with a label only
    loss  the same with one model, by IWeS-loss
    """
    from backend.cli.place import connected, opened
    from jobs.loop import advance
    from jobs.status import project_status
    from store import projects, subsets

    with opened() as place:
        project = connected(place, url, studio_id)
        with place.store.write() as session:
            subsets.begin_if_mixed(session, projects.change_mode(session, project.id, mode))
        advance(place, project.id)
        with place.store.read() as session:
            drawn_by = project_status(session, projects.by_id(session, project.id)).drawn_by
    document = {"project": studio_id, "mode": mode, "drawn_by": drawn_by}
    finish(as_json, document, f"project {studio_id} is in mode {mode}: {drawn_by}")


@command("reconcile", example="iwes reconcile --project 1")
@URL
@PROJECT
@click.option("--wholly", is_flag=True, help="Read every task, not only what changed since the last time.")
@JSON
def reconcile(url: str | None, studio_id: int, wholly: bool, as_json: bool) -> None:
    """Compare with Label Studio now and repair every difference."""
    from backend.cli.place import connected, opened
    from jobs.loop import advance
    from jobs.reconcile import reconcile_project

    with opened() as place:
        project = connected(place, url, studio_id)
        repaired = reconcile_project(place, project.id, wholly=wholly)
        advance(place, project.id)
    told = "; ".join(f"{kind}: {count}" for kind, count in repaired.items()) or "nothing to repair"
    finish(as_json, {"project": studio_id, "repaired": repaired}, told)


@command("disconnect", example="iwes disconnect --project 1")
@URL
@PROJECT
@JSON
def disconnect(url: str | None, studio_id: int, as_json: bool) -> None:
    """Take back what `connect` made in Label Studio; labels and weights are kept."""
    from backend.cli.place import connected, opened
    from jobs.connect import disconnect as disconnect_project

    with opened() as place:
        project = connected(place, url, studio_id, or_half=True)
        disconnect_project(place, project)
    document = {"project": studio_id, "url": project.studio_url, "connected": False}
    finish(as_json, document, f"project {studio_id} is disconnected; labels, draws and weights are kept")
