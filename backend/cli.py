"""The `iwes` command. Heavy modules are imported by the command that needs them: `iwes status` needs no torch."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import click
from click.core import ParameterSource
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from jobs import logs
from jobs.settings import Settings, SettingsError
from jobs.workplace import Workplace, workplace
from store import projects, subsets
from store.database import StoreError
from store.projects import UnknownProject
from store.tables import Mode, Project
from studio.client import tidy_url
from studio.errors import StudioError

URL = click.option("--url", required=True, envvar="LABEL_STUDIO_URL", help="Label Studio's address.")
PROJECT = click.option("--project", "studio_id", type=int, required=True, help="The project's id in Label Studio.")
OUT = click.option("--out", type=click.Path(path_type=Path), help="A .jsonl, .csv or .parquet file.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="iwes-label-studio", prog_name="iwes")
def cli() -> None:
    """Active learning for Label Studio by importance sampling.

    Settings come from the environment: IWES_HOME (default .iwes), DATABASE_URL (default SQLite in the home),
    REDIS_URL (default: an embedded Redis), IWES_HOST, IWES_PORT, IWES_BACKEND_URL, IWES_IMAGE_PREFIXES, IWES_DEVICE,
    IWES_CACHE, IWES_CACHE_GB, IWES_MODELS_GB, IWES_RECONCILE_SECONDS, IWES_LOG (text or json),
    IWES_ADMIN_TOKEN (default: made once, in the home), IWES_WEB_PROCESSES.
    """
    logs.set_up(Settings.from_env().log, logging.WARNING)


@cli.command()
def up() -> None:
    """Start everything this backend needs on one machine: Redis if none is given, web server, worker."""
    from backend.up import up as start_all

    start_all(Settings.from_env())


@cli.command()
def serve() -> None:
    """Start the web server alone."""
    from backend.serve import serve as start

    start(Settings.from_env())


@cli.command()
@click.option("--queue", "names", multiple=True, type=click.Choice(["studio", "gpu"]), help="Default: both.")
@click.option("--burst", is_flag=True, help="Stop when there is nothing left to do.")
def worker(names: tuple[str, ...], burst: bool) -> None:
    """Start a worker; as many as there are GPUs may run, on any host that reaches Redis and the database."""
    from jobs.worker import run

    run(Settings.from_env(), names or ("studio", "gpu"), burst=burst)


@cli.command()
@URL
@click.option("--token", required=True, envvar="LABEL_STUDIO_TOKEN", help="Personal access token or legacy token.")
@PROJECT
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in Mode]),
    default="auto",
    show_default=True,
    help="See `iwes set --help`.",
)
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
def connect(url: str, token: str, studio_id: int, backend_url: str | None, **options: Any) -> None:
    """Connect a Label Studio project: from then on annotators get prioritised tasks."""
    from jobs.connect import Options
    from jobs.connect import connect as connect_project
    from models.plan import Plan

    plan = Plan.said({name: options.pop(name) for name in Plan().as_dict() if name in options})
    with _opened(backend_url) as place:
        done = connect_project(place, url, token, studio_id, Options(training=plan, **options), say=click.echo)
    if done.already:
        click.echo(f"project {studio_id} is connected already; nothing was changed")
        return
    click.echo(
        f"connected: {done.tasks} tasks, {done.labelled} of them labelled before. "
        f"Annotators press “Label All Tasks” in {done.project.studio_url}/projects/{studio_id}/data"
    )


@cli.command()
@click.option("--url", envvar="LABEL_STUDIO_URL", help="Label Studio's address.")
@click.option("--project", "studio_id", type=int, help="The project's id in Label Studio.")
@click.option(
    "--images",
    type=click.Path(path_type=Path),
    help="Instead of a project: a folder of images, or a .csv, .parquet or .jsonl file that names them.",
)
@click.option("--labels", help="The file with the labels of a folder without sub-folders; or the label column's name.")
@click.option("--size", type=int, required=True, help="How many tasks the subset is to have.")
@click.option("--rule", type=click.Choice(subsets.RULES), help="Default: dis, or loss in a project in that mode.")
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
def select(
    url: str | None, studio_id: int | None, images: Path | None, size: int, name: str | None, **options: Any
) -> None:
    """Select a weighted subset of the tasks that came with a label.

    \b
    iwes select --url http://localhost:8080 --project 1 --size 400
    iwes select --images photos --size 400 --out subset.jsonl

    Of a connected project (--url, --project), rounds of training and drawing run on the workers until the subset has
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
        _select_images(images, size=size, name=name, **given, **options)
        return
    if url is None or studio_id is None:
        raise click.UsageError("give --url and --project for a project of Label Studio, or --images for a folder")
    if wrong := [option for option, value in given.items() if value is not None]:
        flag = {"way": "train"}.get(wrong[0], wrong[0].replace("_", "-"))
        raise click.UsageError(f"--{flag} goes with --images only{'; see `iwes export`' if flag == 'out' else ''}")
    _select_tasks(url, studio_id, size=size, name=name, **options)


def _select_images(
    images: Path,
    *,
    labels: str | None,
    out: Path,
    network: str | None,
    way: str | None,
    rng_seed: int | None,
    rule: str | None,
    **options: Any,
) -> None:
    from rich.console import Console

    from backend.select_images import select_images
    from jobs.select_here import Wish

    given: dict[str, Any] = {"network": network, "way": way, "rng_seed": rng_seed, "rule": rule}
    wish = Wish(**{name: value for name, value in given.items() if value is not None}, **options)
    with _opened() as place:
        try:
            select_images(place, images, labels, out, wish, Console())
        except KeyboardInterrupt:
            _give_up("stopped; the same command goes on from here")


def _select_tasks(
    url: str, studio_id: int, *, size: int, rule: str | None, name: str | None, detach: bool, **chances: Any
) -> None:
    from rich.console import Console

    from backend import selection

    with _opened() as place:
        project = _connected(place, url, studio_id)
        rule = rule or subsets.rule_of(project)
        subset = selection.ask(place, project.id, size=size, rule=rule, name=name or rule, **chances)
        if detach:
            click.echo(f"subset {subset.name} is being selected by the workers; `iwes status` shows how far it is")
            return
        try:
            found = selection.watch(place, project, subset, Console())
        except KeyboardInterrupt:
            click.echo(f"\nthe workers go on with subset {subset.name}; the same command watches again")
            return
    click.echo(selection.summary(found))
    click.echo(f"in Label Studio: the tab “Subset {found.name}” in {project.studio_url}/projects/{studio_id}/data")


@cli.command("set")
@URL
@PROJECT
@click.option(
    "--mode", type=click.Choice([mode.value for mode in Mode]), required=True, help="Which tasks rounds are drawn from."
)
def set_(url: str, studio_id: int, mode: str) -> None:
    """Change how a connected project goes on.

    \b
    auto  unlabelled tasks by IWeS-ent for annotators, and tasks that came with
          a label by IWeS-dis without anybody; when no task is left to ask
          annotators for, only the latter
    ent   unlabelled tasks only; labels that were there already train as they are
    dis   tasks that came with a label only
    loss  the same with one model, by IWeS-loss
    """
    from jobs.loop import advance
    from jobs.status import project_status

    with _opened() as place:
        project = _connected(place, url, studio_id)
        with place.store.write() as session:
            subsets.begin_if_mixed(session, projects.change_mode(session, project.id, mode))
        advance(place, project.id)
        with place.store.read() as session:
            drawn_by = project_status(session, projects.by_id(session, project.id)).drawn_by
    click.echo(f"project {studio_id} is in mode {mode}: {drawn_by}")


@cli.command()
@URL
@PROJECT
def disconnect(url: str, studio_id: int) -> None:
    """Take back what `connect` made in Label Studio; labels and weights are kept."""
    from jobs.connect import disconnect as disconnect_project

    with _opened() as place:
        project = _connected(place, url, studio_id, or_half=True)
        disconnect_project(place, project)
    click.echo(f"project {studio_id} is disconnected; labels, draws and weights are kept")


@cli.command()
@URL
@PROJECT
@click.option("--wholly", is_flag=True, help="Read every task, not only what changed since the last time.")
def reconcile(url: str, studio_id: int, wholly: bool) -> None:
    """Compare with Label Studio now and repair every difference."""
    from jobs.loop import advance
    from jobs.reconcile import reconcile_project

    with _opened() as place:
        project = _connected(place, url, studio_id)
        repaired = reconcile_project(place, project.id, wholly=wholly)
        advance(place, project.id)
    click.echo("; ".join(f"{kind}: {count}" for kind, count in repaired.items()) or "nothing to repair")


@cli.command()
@URL
@PROJECT
@click.option(
    "--format",
    help="jsonl, csv, parquet, imagefolder, label-studio or huggingface. Default: as the suffix of --out says.",
)
@click.option("--weights", help="paper (the default), unbiased, mean1 or sum-to-pool.")
@click.option("--rounds", help="Only what these rounds asked for, such as 0-3,5.")
@click.option("--stratum", help="labelled: only tasks that came with a label; unlabelled: only those that did not.")
@click.option("--subset", help="One of its subsets alone. Default: all that its models train on.")
@click.option("--as-of", help="The set as it was known at a time, such as 2026-01-31T12:00.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The file, or for some formats the folder.")
def export(url: str, studio_id: int, out: Path, **words: str | None) -> None:
    """Write the weighted training set of a project, connected or not.

    \b
    iwes export --url http://localhost:8080 --project 1 --out set.jsonl
    iwes export --url … --project 1 --format imagefolder --weights mean1 --out set

    A manifest beside it (in a folder: inside) says how every weight came about, and how to make the same again.
    """
    from rich.console import Console

    from backend.exports.terminal import export_to

    with _opened() as place:
        with place.store.read() as session:
            project = projects.by_address(session, tidy_url(url), studio_id)
        if project is None:
            raise UnknownProject(
                f"project {studio_id} of {tidy_url(url)} is not known; `iwes status` lists those that are"
            )
        export_to(place, project, words, out, Console())


@cli.command()
def status() -> None:
    """Show rounds, labels until the next retrain, jobs, workers and the last reconcile."""
    from backend.status_page import show
    from jobs.status import all_projects, queue_status

    with _opened() as place:
        show(all_projects(place), queue_status(place.redis))


@cli.command()
def doctor() -> None:
    """Show what this machine has to train with, and what is missing."""
    from backend.doctor import examine

    if not examine(Settings.from_env()):
        sys.exit(1)


@contextmanager
def _opened(backend_url: str | None = None) -> Iterator[Workplace]:
    settings = Settings.from_env()
    if backend_url:
        settings = settings.at(tidy_url(backend_url))
    with workplace(settings) as place:
        yield place


def _connected(place: Workplace, url: str, studio_id: int, *, or_half: bool = False) -> Project:
    """The connected project; with `or_half` also one whose connecting or disconnecting was cut off."""
    with place.store.read() as session:
        project = projects.by_address(session, tidy_url(url), studio_id)
    if project is None or not (project.connected or (or_half and project.before)):
        raise UnknownProject(
            f"project {studio_id} of {tidy_url(url)} is not connected; `iwes status` lists those that are"
        )
    return project


def main() -> None:
    """Every mistake a person can make ends in one line and exit code 1."""
    from backend.embedded.ports import PortBusy
    from backend.embedded.process import ProcessFailed
    from backend.embedded.redis import RedisUnavailable
    from backend.exports.errors import ExportError
    from jobs.dataset import DatasetError
    from models.plan import PlanError

    ours = (
        StudioError,
        StoreError,
        UnknownProject,
        SettingsError,
        ProcessFailed,
        RedisUnavailable,
        PortBusy,
        PlanError,
        subsets.BadSubset,
        DatasetError,
        ExportError,
    )
    try:
        cli()
    except ours as error:
        _give_up(str(error))
    except RedisError as error:
        _give_up(f"Redis does not answer ({error}); check REDIS_URL, or start one with `iwes up`")
    except SQLAlchemyError as error:
        _give_up(f"the database cannot be used: {str(error).splitlines()[0]}; check DATABASE_URL")
    except OSError as error:
        _give_up(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")


def _give_up(reason: str) -> NoReturn:
    click.echo(f"iwes: {reason}", err=True)
    sys.exit(1)
