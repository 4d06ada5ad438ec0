"""`iwes connect`: from then on annotators of the project get prioritised tasks."""

from __future__ import annotations

from typing import Any

import click

from backend.cli.command import JSON, MODES, PROJECT, RULES, command
from backend.cli.output import finish, say_beside


@command("connect", example="iwes connect --url http://localhost:8080 --token … --project 1")
@click.option("--url", required=True, envvar="LABEL_STUDIO_URL", help="Label Studio's address.")
@click.option("--token", required=True, envvar="LABEL_STUDIO_TOKEN", help="Personal access token or legacy token.")
@PROJECT
@click.option(
    "--mode",
    type=MODES,
    default="auto",
    show_default=True,
    help="See `iwes set --help`.",
)
@click.option("--rule", type=RULES, default="ent", show_default=True, help="See `iwes set --help`.")
@click.option("--k", default=50, show_default=True, help="Labels between two trainings.")
@click.option("--seed", "seed_size", default=50, show_default=True, help="Labels before the first training.")
@click.option("--cap", default=2.0, show_default=True, help="Largest training weight.")
@click.option("--floor", default=0.05, show_default=True, help="Smallest probability of being asked for.")
@click.option("--reserve", default=0.5, show_default=True, help="Tasks to go on with during training, as part of k.")
@click.option("--sharpness", default=1.0, show_default=True, help="Exponent on the probability.")
@click.option("--network", default="small-cnn", show_default=True, help="What to train; `iwes doctor` lists them.")
@click.option("--train", "way", default="auto", show_default=True, help="full, head (frozen backbone) or auto.")
@click.option("--recipe", default="auto", show_default=True, help="auto, or paper: SGD as in the IWeS paper.")
@click.option("--learning-rate", help="A number, or choose: the best of five on the seed set. Default: the recipe's.")
@click.option("--schedule", help="constant or cosine. Default: the recipe's.")
@click.option("--balance", is_flag=True, help="Let rare classes count as much as frequent ones.")
@click.option("--warm-start", is_flag=True, help="Go on from the last model instead of beginning anew.")
@click.option("--calibrate", is_flag=True, help="Scale probabilities to be right on labels not trained on.")
@click.option("--rng-seed", type=click.IntRange(0, 2**31 - 1), help="Makes every draw repeatable. Default: random.")
@click.option("--subset-size", default=0, help="How many of the tasks that came with a label to select in all.")
@click.option("--backend-url", help="Where Label Studio reaches this backend, if not at IWES_BACKEND_URL.")
@JSON
def connect(url: str, token: str, studio_id: int, backend_url: str | None, as_json: bool, **options: Any) -> None:
    """Connect a Label Studio project: from then on annotators get prioritised tasks."""
    from backend.cli.place import opened
    from jobs.connect import Options
    from jobs.connect import connect as connect_project
    from models.plan import Plan

    plan = Plan.said({name: options.pop(name) for name in Plan().as_dict() if name in options})
    with opened(backend_url) as place:
        wish = Options(training=plan, **options)
        done = connect_project(place, url, token, studio_id, wish, say=say_beside(as_json))
    document = {
        "project": studio_id,
        "url": done.project.studio_url,
        "already": done.already,
        "tasks": done.tasks,
        "labelled": done.labelled,
        "came_labelled": done.came_labelled,
    }
    if done.already:
        finish(as_json, document, f"project {studio_id} is connected already; nothing was changed")
        return
    finish(
        as_json,
        document,
        f"connected: {done.tasks} tasks, {done.labelled} of them labelled before. "
        f"Annotators press “Label All Tasks” in {done.project.studio_url}/projects/{studio_id}/data",
    )
