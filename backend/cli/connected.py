"""`iwes set`, `iwes reconcile` and `iwes disconnect`: what is done to a project that is connected."""

from __future__ import annotations

from typing import Any

import click

from backend.cli.command import JSON, MODES, PROJECT, RULES, URL, command
from backend.cli.output import finish


@command("set", example="iwes set --project 1 --k 100")
@URL
@PROJECT
@click.option("--mode", type=MODES, help="Which tasks rounds are drawn from.")
@click.option("--rule", type=RULES, help="What makes it likely that annotators are asked for a task.")
@click.option("--k", type=int, help="Labels between two trainings.")
@click.option("--cap", type=float, help="Largest training weight.")
@click.option("--floor", type=float, help="Smallest probability of being asked for.")
@click.option("--reserve", type=float, help="Tasks to go on with during training, as part of k.")
@click.option("--sharpness", type=float, help="Exponent on the probability.")
@click.option("--network", help="What to train; `iwes doctor` lists them.")
@click.option("--train", "way", help="full, head (frozen backbone) or auto.")
@click.option("--calibrate/--no-calibrate", default=None, help="Scale probabilities on labels not trained on.")
@JSON
def set_(url: str | None, studio_id: int, as_json: bool, **options: Any) -> None:
    """Change how a connected project goes on. What was drawn, labelled and trained before stays as it is.

    \b
    --mode auto    unlabelled tasks by the rule for annotators, and tasks that came
                   with a label by IWeS-dis without anybody; when no task is left
                   to ask annotators for, only the latter
    --mode ent     unlabelled tasks only; labels that were there already train as
                   they are
    --mode dis     tasks that came with a label only
    --mode loss    the same with one model, by IWeS-loss
    --rule ent     annotators are asked where the answer is spread over classes:
                   the entropy
    --rule margin  where it is torn between two classes
    """
    from backend.cli.place import connected, opened
    from jobs.change import change
    from jobs.status import project_status
    from store import projects

    wishes = {name: value for name, value in options.items() if value is not None}
    if not wishes:
        raise click.UsageError("nothing to change is given")
    with opened() as place:
        project = connected(place, url, studio_id)
        changes = change(place, project.id, wishes)
        with place.store.read() as session:
            drawn_by = project_status(session, projects.by_id(session, project.id)).drawn_by
    document = {"project": studio_id, "changes": [vars(made) for made in changes], "drawn_by": drawn_by}
    told = [f"{made.said}: {made.effect}" for made in changes] or ["nothing was changed: all is as it was"]
    finish(as_json, document, *told, f"project {studio_id} is drawn from by {drawn_by}")


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
