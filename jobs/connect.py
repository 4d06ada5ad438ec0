"""Connects a Label Studio project to this backend and undoes it, leaving nothing half-made behind."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from urllib.parse import urlsplit

import requests
from sqlalchemy import delete
from sqlalchemy.orm import Session

from jobs import draw, publish
from jobs.images import ImageSource, NothingServed
from jobs.loop import advance, prepare
from jobs.reading import Reader
from jobs.reconcile import read_until
from jobs.workplace import Workplace
from models import networks, plugins
from models.networks import UnknownNetwork
from models.plan import Plan
from store import pool, projects, rounds, subsets
from store.tables import Draw, Label, Mode, Project, Round, RoundState, Rule, Subset, Task
from studio import connection, queue, tabs
from studio.client import Client
from studio.errors import NotFound, Refused, StudioError
from studio.labels import ImageClasses, read_config
from studio.projects import ProjectSettings, StudioProject

WEBHOOK_SECONDS = 10.0
MOST_TASKS = 1_000_000
"""In one batch: as many as Label Studio takes in one message."""
TRIED_IMAGES = 5


class ConnectError(StudioError):
    """The project cannot be connected as asked; the message says what to change."""


class BadOption(ConnectError):
    """An option that cannot be used."""

    def __init__(self, option: str, rule: str) -> None:
        self.option = option
        self.rule = rule.removeprefix(": ")
        flag = {"seed_size": "seed"}.get(option, option.replace("_", "-"))
        super().__init__(f"--{flag}{rule}" if rule.startswith(":") else f"--{flag} {rule}")


@dataclass(frozen=True)
class Options:
    """How a project is sampled and trained."""

    mode: Mode = Mode.AUTO
    rule: Rule = Rule.ENT
    k: int = 50
    seed_size: int = 50
    cap: float = 2.0
    floor: float = 0.05
    reserve: float = 0.5
    sharpness: float = 1.0
    network: str = "small-cnn"
    training: Plan = field(default_factory=Plan)
    rng_seed: int | None = None
    subset_size: int = 0
    """How many of the tasks that came with a label to select in all; 0: as many as annotators are asked for."""

    def check(self) -> None:
        rules = {
            "mode": (f"must be one of {', '.join(Mode)}", self.mode in list(Mode)),
            "rule": (f"must be one of {', '.join(Rule)}", self.rule in list(Rule)),
            "subset_size": ("must not be negative", self.subset_size >= 0),
            "k": (f"must be from 1 to {MOST_TASKS:,}", 1 <= self.k <= MOST_TASKS),
            "seed_size": (f"must be from 2 to {MOST_TASKS:,}", 2 <= self.seed_size <= MOST_TASKS),
            "cap": ("must be at least 1: a weight is 1/p, and p is at most 1", 1 <= self.cap < math.inf),
            "floor": ("must be between 0 and 1, both excluded", 0 < self.floor < 1),
            "reserve": ("must be between 0 and 10", 0 <= self.reserve <= 10),
            "sharpness": ("must be above 0, and at most 100", 0 < self.sharpness <= 100),
        }
        for option, (rule, kept) in rules.items():
            if not kept:
                raise BadOption(option, rule)
        try:
            plugins.check(self.network)
            input_size(self.network)
        except (UnknownNetwork, plugins.NotInstalled) as error:
            raise BadOption("network", f": {error}") from error


def input_size(network: str) -> int:
    """Side of the images a network reads; a model of another package says so only once it is made, so any will do."""
    return networks.input_size("small-cnn" if plugins.find(network) else network)


@dataclass(frozen=True)
class Connected:
    project: Project
    already: bool
    tasks: int
    labelled: int
    came_labelled: int = 0
    """Tasks that came with a label which can be learnt."""


Say = Callable[[str], None]


def connect(
    place: Workplace, url: str, token: str, studio_id: int, options: Options, say: Say = lambda line: None
) -> Connected:
    """Everything between an address and annotators being served the seed batch. Whatever fails, what was made before
    it is taken back. Connecting a connected project changes nothing."""
    options.check()
    client = Client(url, token)
    studio = StudioProject(client, studio_id)
    before = studio.settings()
    classes = read_config(before.label_config)
    with place.store.read() as session:
        known = projects.by_address(session, client.url, studio_id)
        if known is not None and known.connected:
            return Connected(known, True, pool.size(session, known), 0)
    _check_backend(place.settings.backend_url)
    with ExitStack() as undo:
        project = _remember(place, client.url, token, before, classes, options)
        undo.callback(_forget, place, project.id, known is not None)
        say(f"project {studio_id} “{before.title}”: {len(classes.classes)} classes from <Choices {classes.control}>")
        _attach(place, project, studio, before, undo)
        say("webhook and ML backend added; Label Studio's message arrived here")
        moment = studio.moment()
        reader = Reader(
            place,
            project,
            studio,
            came_along=lambda annotation: True,
            on_progress=lambda count: say(f"{count} tasks read"),
        )
        reader.changed(since=None)
        reader.differing()
        labelled = reader.found.repaired["labels missed"]
        _try_images(place, project, studio)
        _surface_first(place, project, say)
        with place.store.write() as session:
            project = projects.lock(session, project.id)
            project.connected = True
            read_until(project, moment, wholly=True)
            tasks, came = pool.size(session, project), pool.came_labelled(session, project)
            _begin_subset(session, project, options, came, say)
        undo.pop_all()
    advance(place, project.id)
    prepare(place, project.id)
    return Connected(project, False, tasks, labelled, came)


def disconnect(place: Workplace, project: Project) -> None:
    """Takes back what connecting made in Label Studio. Labels, draws and weights stay, here and in `task.data`, so
    that the project can be exported or connected again."""
    with place.store.write() as session:
        projects.lock(session, project.id).connected = False
    studio = place.studio(project)
    try:
        studio.settings()
    except NotFound:
        pass  # the project itself is gone, and everything in it
    else:
        _detach(project, studio)
    with place.store.write() as session:
        stored = projects.lock(session, project.id)
        stored.before = {}  # until then `disconnect` can be called again
        stored.secret = secrets.token_urlsafe(32)  # the old one opens nothing any more


def _check_backend(url: str) -> None:
    if urlsplit(url).hostname in ("0.0.0.0", "::"):  # noqa: S104 - refused, not bound
        raise ConnectError(f"Label Studio cannot call {url}; set IWES_BACKEND_URL, or give --backend-url")
    try:
        answer = requests.get(f"{url}/health", timeout=5)
        alive = answer.status_code == 200 and answer.json().get("model_class") == "IWeS"
    except (requests.RequestException, ValueError):
        alive = False
    if not alive:
        raise ConnectError(f"this backend does not answer at {url}; start it with `iwes up`, or give --backend-url")


def _remember(
    place: Workplace, url: str, token: str, before: ProjectSettings, classes: ImageClasses, options: Options
) -> Project:
    values = {
        **{name: value for name, value in asdict(options).items() if name != "subset_size"},
        "training": options.training.as_dict(),
        "rng_seed": options.rng_seed if options.rng_seed is not None else secrets.randbelow(2**31),
        "title": before.title,
        "token": token.strip(),
        "secret": secrets.token_urlsafe(32),
        "backend_url": place.settings.backend_url,
        "control": classes.control,
        "target": classes.target,
        "field": classes.field,
        "classes": list(classes.classes),
        "before": {
            "sampling": before.sampling,
            "maximum_annotations": before.maximum_annotations,
            "model_version": before.model_version or "",
        },
    }
    with place.store.write() as session:
        project = projects.by_address(session, url, before.id)
        if project is None:
            project = Project(studio_url=url, studio_id=before.id)
            session.add(project)
        else:
            values.pop("rng_seed")  # the draws of one project come from one seed
            if project.before:
                values.pop("before")  # a connect that was killed had changed the project already
        for name, value in values.items():
            setattr(project, name, value)
        session.flush()
    return project


def _attach(
    place: Workplace, project: Project, studio: StudioProject, before: ProjectSettings, undo: ExitStack
) -> None:
    undo.callback(_quietly, _detach, project, studio)
    connection.remove_backends(studio, project.backend_url)  # a connect that was killed leaves one with an old secret
    queue.clear(studio)
    connection.add_backend(studio, project.backend_url, project.secret)
    connection.set_webhook(studio, project.backend_url, project.secret)
    asked_at = time.monotonic()
    studio.change(sampling="Uncertainty sampling", maximum_annotations=1)  # this also fires PROJECT_UPDATED
    _await_webhook(place, project, asked_at + WEBHOOK_SECONDS)
    tabs.ensure(studio, tabs.WEIGHTS)
    with place.store.read() as session:
        shown = [subset for subset in subsets.all_of(session, project) if subset.published_round is not None]
        doubted = any(subsets.doubts(session, subset) for subset in shown)
    for subset in shown:
        tabs.ensure(studio, tabs.of_subset(subset.name))
    if doubted:
        tabs.ensure(studio, tabs.SECOND_LOOK)


def _await_webhook(place: Workplace, project: Project, deadline: float) -> None:
    while time.monotonic() < deadline:
        with place.store.read() as session:
            if projects.by_id(session, project.id).webhook_seen_at != project.webhook_seen_at:
                return
        time.sleep(0.1)
    raise ConnectError(
        f"Label Studio took the webhook {project.backend_url}/webhook but its message never arrived here: "
        f"{connection.PRIVATE_ADDRESS_HELP}; and see that backend and `iwes connect` use the same DATABASE_URL"
    )


def _try_images(place: Workplace, project: Project, studio: StudioProject) -> None:
    """Finds out before anybody labels whether the images can be read at all."""
    with place.store.write() as session:
        stored = projects.lock(session, project.id)
        pool.give_another_chance(session, stored)
        ids = pool.drawable(session, stored, at_least=1) or list(pool.labels_that_came(session, stored))
        some = pool.data_of(session, ids[:TRIED_IMAGES])
    if not some:
        return
    source = ImageSource.of(place, project, input_size(project.network))
    try:
        loaded = source.load(some)
    except NothingServed as error:
        raise ConnectError(f"no image can be read: {error}") from error
    if not len(loaded.good):
        first = next(iter((loaded.bad | loaded.away).values()))
        raise ConnectError(f"no image can be read; of the first {len(some)} tasks: {first}")


def _surface_first(place: Workplace, project: Project, say: Say) -> None:
    """Draws and publishes the seed batch; on a project that was connected before, goes on with its last round."""
    with place.store.read() as session:
        last = rounds.latest(session, project)
    if last is None:
        if project.mode in (Mode.AUTO, Mode.ENT):
            draw.draw_round(place, project.id, 0)
        with place.store.read() as session:
            last = rounds.latest(session, project)
        if last is None:
            return  # nothing to ask for: the first unlabelled tasks imported are drawn from then on
        say(f"seed batch of {last.batch_size} drawn, writing weights")
    if last.state == RoundState.DRAWN:
        publish.publish_round(place, project.id, last.number)
    else:
        publish.surface(place, project, last.number)


def _begin_subset(session: Session, project: Project, options: Options, came: int, say: Say) -> None:
    """The tasks that came with a label: selected from at once, where it is known how many are wanted."""
    projects.change_mode(session, project.id, project.mode)
    if not came or project.mode == Mode.ENT:
        return
    size = min(options.subset_size, came)
    subset = subsets.begin_if_mixed(session, project) or subsets.by_name(session, project, subsets.AUTO)
    if subset is None and size > 1:
        try:
            subset = subsets.ask(session, project, name=subsets.AUTO, rule=subsets.rule_of(project), size=size)
        except subsets.BadSubset as error:
            raise ConnectError(f"--subset-size: {error}") from error
    if subset is None:
        say(f"{came} tasks came with a label: `iwes select --size …` selects a weighted subset of them")
        return
    if size > subset.size:
        subset.size, subset.published_round = size, None
    say(f"{came} tasks came with a label: a weighted part of them helps to train, chosen by IWeS-{subset.rule}")


def _detach(project: Project, studio: StudioProject) -> None:
    """Ours to remove: the backend row, its webhook (Label Studio would leave it behind), the tab, and the queues."""
    try:
        studio.change(**project.before)
    except Refused:
        studio.change(**{**project.before, "model_version": ""})  # the version it had is no more
    queue.clear(studio)
    connection.remove_backends(studio, project.backend_url)
    connection.remove_webhooks(studio, project.backend_url)
    tabs.remove_ours(studio)


def _forget(place: Workplace, project_id: int, was_known: bool) -> None:
    """A project that could not be connected leaves the store as it found it; an older history is kept."""
    if was_known:
        return
    with place.store.write() as session:
        of_project = Round.project_id == project_id
        session.execute(delete(Label).where(Label.project_id == project_id))
        session.execute(delete(Draw).where(Draw.round.has(of_project)))
        session.execute(delete(Round).where(of_project))
        session.execute(delete(Subset).where(Subset.project_id == project_id))
        session.execute(delete(Task).where(Task.project_id == project_id))
        session.execute(delete(Project).where(Project.id == project_id))


def _quietly(undo: Callable[..., None], *arguments: object) -> None:
    """Undoing must not hide the error that made it necessary, nor stop the rest from being undone."""
    try:
        undo(*arguments)
    except StudioError:
        return
