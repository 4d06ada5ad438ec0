"""`iwes select`: a weighted subset of what has labels already, of a project or of images on this disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from backend.cli.command import JSON, OUT, SUBSET_RULES, URL, command
from backend.cli.mistakes import INTERRUPTED, give_up
from backend.cli.output import console_beside, finish


@command("select", example="iwes select --project 1 --size 400")
@URL
@click.option("--project", "studio_id", type=int, help="The project's id in Label Studio.")
@click.option(
    "--images",
    type=click.Path(path_type=Path),
    help="Instead of a project: a folder of images, or a .csv, .parquet or .jsonl file that names them.",
)
@click.option("--labels", help="The file with the labels of a folder without sub-folders; or the label column's name.")
@click.option("--size", type=int, required=True, help="How many tasks the subset is to have.")
@click.option("--rule", type=SUBSET_RULES, help="Default: dis, or loss in a project in that mode.")
@click.option("--name", help="What the subset is called. Default: like its rule.")
@click.option(
    "--seed", "seed_size", type=click.IntRange(2), help="Tasks drawn at random first. Default: the project's."
)
@click.option("--k", type=click.IntRange(1), help="Tasks drawn in each round.")
@click.option("--cap", type=click.FloatRange(1), help="Largest training weight.")
@click.option(
    "--floor", type=click.FloatRange(0, 1, max_open=True), help="Smallest probability. Default: the project's."
)
@click.option("--detach", is_flag=True, help="Do not wait until it is selected.")
@click.option("--network", help="With --images: what to train; `iwes doctor` lists them. Default: small-cnn.")
@click.option("--train", "way", help="With --images: full, head (frozen backbone) or auto, the default.")
@click.option("--rng-seed", type=click.IntRange(0, 2**31 - 1), help="With --images: another one, another subset.")
@OUT
@JSON
def select(
    url: str | None,
    studio_id: int | None,
    images: Path | None,
    size: int,
    name: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Select a weighted subset of the tasks that came with a label.

    \b
    iwes select --project 1 --size 400
    iwes select --images photos --size 400 --out subset.jsonl

    Of a connected project (--project), rounds of training and drawing run on the workers until the subset has
    its size; no annotator is needed. What is not given is as connected.

    Of --images, they run here, and neither Label Studio nor workers are needed. A folder has one sub-folder per class,
    or --labels names a table of its labels; a table has the columns image and label, or --labels names the latter.

    The same command again goes on where it stopped, and with a larger --size it goes on selecting.
    """
    here = ("labels", "network", "way", "rng_seed", "out")
    given = {option: options.pop(option) for option in here}
    if images is not None:
        from_studio = click.get_current_context().get_parameter_source("url") is ParameterSource.COMMANDLINE
        if from_studio or studio_id is not None or options.pop("detach"):
            raise click.UsageError("--images selects here, from no project: leave out --url, --project and --detach")
        if given["out"] is None:
            raise click.UsageError("--images needs --out, the file to write the subset to")
        _select_images(images, as_json, size=size, name=name, **given, **options)
        return
    if studio_id is None:
        raise click.UsageError("give --project for a project of Label Studio, or --images for a folder")
    if wrong := [option for option, value in given.items() if value is not None]:
        flag = {"way": "train"}.get(wrong[0], wrong[0].replace("_", "-"))
        raise click.UsageError(f"--{flag} goes with --images only{'; see `iwes export`' if flag == 'out' else ''}")
    _select_tasks(url, studio_id, as_json, size=size, name=name, **options)


def _select_images(
    images: Path,
    as_json: bool,
    *,
    labels: str | None,
    out: Path,
    network: str | None,
    way: str | None,
    rng_seed: int | None,
    rule: str | None,
    **options: Any,
) -> None:
    from backend.cli.place import opened
    from backend.select_images import select_images
    from jobs.select_here import Wish

    given: dict[str, Any] = {"network": network, "way": way, "rng_seed": rng_seed, "rule": rule}
    wish = Wish(**{name: value for name, value in given.items() if value is not None}, **options)
    with opened() as place:
        try:
            found = select_images(place, images, labels, out, wish, console_beside(as_json))
        except KeyboardInterrupt:
            give_up("stopped; the same command goes on from here", INTERRUPTED)
    finish(as_json, {"file": out, "subset": found})


def _select_tasks(
    url: str | None,
    studio_id: int,
    as_json: bool,
    *,
    size: int,
    rule: str | None,
    name: str | None,
    detach: bool,
    **chances: Any,
) -> None:
    from backend import selection
    from backend.cli.place import connected, opened
    from jobs.status import subset_status
    from store import subsets

    with opened() as place:
        project = connected(place, url, studio_id)
        rule = rule or subsets.rule_of(project)
        subset = selection.ask(place, project.id, size=size, rule=rule, name=name or rule, **chances)
        if detach:
            with place.store.read() as session:
                status = subset_status(session, project, subsets.by_id(session, subset.id))
            said = f"subset {subset.name} is being selected by the workers; `iwes status` shows how far it is"
            finish(as_json, {"project": studio_id, "subset": status}, said)
            return
        try:
            found = selection.watch(place, project, subset, console_beside(as_json))
        except KeyboardInterrupt:
            give_up(f"the workers go on with subset {subset.name}; the same command watches again", INTERRUPTED)
    finish(
        as_json,
        {"project": studio_id, "subset": found},
        selection.summary(found),
        f"in Label Studio: the tab “Subset {found.name}” in {project.studio_url}/projects/{studio_id}/data",
    )
