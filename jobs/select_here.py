"""Selects a subset of a data set outside of Label Studio in this process: without Redis, worker or Label Studio.

All state is in the store, as for every subset. Killed at any moment, the same wish goes on with the step that was cut
off, and what is selected in the end is what would have been selected without.
"""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from jobs import step
from jobs.connect import Options, input_size
from jobs.dataset import Dataset, DatasetError
from jobs.images import ImageSource
from jobs.loop import selecting
from jobs.queues import Work
from jobs.status import SubsetGlance, subset_glance
from jobs.workplace import Workplace
from models.plan import Plan
from store import labels, pool, projects, rounds, subsets
from store.tables import FOLDER, Project, Subset

FIELD = "image"
TRIED_IMAGES = 20

Told = Callable[[SubsetGlance, Mapping[str, Any]], None]
"""Hears how far the subset is, and of the step that runs what `jobs.step.note` says of it."""


class Stuck(DatasetError):
    """A step that was done and is still due; the message says what may help."""


@dataclass(frozen=True)
class Wish:
    size: int
    rule: str = "dis"
    name: str | None = None
    """Like the rule, if not given."""
    seed_size: int | None = None
    k: int | None = None
    cap: float | None = None
    floor: float | None = None
    network: str = "small-cnn"
    way: str = "auto"
    rng_seed: int = 0


def select_here(place: Workplace, dataset: Dataset, wish: Wish, told: Told) -> tuple[Project, Subset]:
    """The subset, selected to its size; raises BadSubset, DatasetError, ConnectError, or what stops a step."""
    options = Options(network=wish.network, training=Plan(way=wish.way), rng_seed=wish.rng_seed)
    options.check()
    _try_images(place, dataset, wish)
    project, subset = _remember(place, dataset, wish, options)
    _try_again(place, project)
    last = None
    while work := _due(place, project, subset):
        if work.id == last:
            raise Stuck(f"{work.id} cannot be done now; the reasons are in `iwes status`. The same command tries again")
        last = work.id
        _do(place, work, project, subset, told)
    told(_status(place, project, subset), {})
    return project, subset


def _try_images(place: Workplace, dataset: Dataset, wish: Wish) -> None:
    """Finds out before anything is stored whether the images can be read at all."""
    paths = list(dataset.labels)
    some = paths[:: max(1, len(paths) // TRIED_IMAGES)][:TRIED_IMAGES]
    project = Project(studio_url=_address(dataset), field=FIELD, network=wish.network)
    loaded = _images(place, project).load([{FIELD: path} for path in some])
    if not len(loaded.good):
        first = next(iter((loaded.bad | loaded.away).values()))
        raise DatasetError(f"no image can be read; of {len(some)} below {dataset.root} the first: {first}")


def _remember(place: Workplace, dataset: Dataset, wish: Wish, options: Options) -> tuple[Project, Subset]:
    """Puts the data set and the wish into the store in one transaction: both are there, or neither."""
    with place.store.write() as session:
        project = projects.by_address(session, _address(dataset), _number(dataset, wish))
        if project is None:
            project = Project(
                **{name: value for name, value in asdict(options).items() if name not in ("training", "subset_size")},
                training=options.training.as_dict(),
                studio_url=_address(dataset),
                studio_id=_number(dataset, wish),
                secret=secrets.token_urlsafe(32),
                field=FIELD,
                **dict.fromkeys(("title", "token", "backend_url", "control", "target"), ""),
            )
            session.add(project)
        project.title = dataset.title
        project.classes = dataset.classes
        session.flush()
        project = projects.lock(session, project.id)
        ids = _numbered(pool.studio_ids_by(session, project, FIELD), dataset)
        pool.mirror(session, project, {ids[path]: {FIELD: path} for path in dataset.labels})
        pool.forget(session, project, pool.known_ids(session, project) - set(ids.values()))
        labels.record_given(session, project, {ids[path]: name for path, name in dataset.labels.items()})
        chances = {name: getattr(wish, name) for name in ("seed_size", "k", "cap", "floor")}
        name = wish.name or wish.rule
        subset = subsets.ask(session, project, name=name, rule=wish.rule, size=wish.size, **chances)
    return project, subset


def _numbered(known: Mapping[str, int], dataset: Dataset) -> dict[str, int]:
    """A number for each path: the one it has, or the next that is free. Paths come in order, so they are the same
    numbers, and give the same draws, wherever the data set is read."""
    free = max(known.values(), default=0)
    ids: dict[str, int] = {}
    for path in dataset.labels:
        if path not in known:
            free += 1
        ids[path] = known.get(path, free)
    return ids


def _address(dataset: Dataset) -> str:
    return f"{FOLDER}{dataset.root}"


def _number(dataset: Dataset, wish: Wish) -> int:
    """Tells apart what may be asked of the images of one folder: other labels, another network or other random numbers
    make another project, so that no model is compared with one that was trained otherwise."""
    told = "\n".join([dataset.source, wish.network, wish.way, str(wish.rng_seed)])
    return zlib.crc32(told.encode()) >> 1  # the databases' integers have a sign


def _try_again(place: Workplace, project: Project) -> None:
    """Takes back images that were set aside and have been repaired since. Where nothing has changed, nothing does."""
    with place.store.read() as session:
        ids = pool.set_aside_ids(session, project)
        data = pool.data_of(session, ids)
    if ids:
        readable = [ids[index] for index in _images(place, project).load(data).good.tolist()]
        with place.store.write() as session:
            for task_id in readable:
                pool.set_aside(session, task_id, None)


def _images(place: Workplace, project: Project) -> ImageSource:
    settings = place.settings
    size = input_size(project.network)
    return ImageSource(project, None, settings.image_cache, size, most_bytes=settings.shelf_bytes)


def _due(place: Workplace, project: Project, subset: Subset) -> Work | None:
    with place.store.read() as session:
        stored = subsets.by_id(session, subset.id)
        return next(iter(selecting(session, projects.by_id(session, project.id), stored)), None)


def _do(place: Workplace, work: Work, project: Project, subset: Subset, told: Told) -> None:
    from jobs.review import review_subset
    from jobs.select import select_round
    from jobs.train import train_round

    kind = work.function.rpartition(".")[2]
    if kind == "show":
        with place.store.write() as session:
            stored = subsets.by_id(session, subset.id)
            last = rounds.latest(session, projects.by_id(session, project.id), stored)
            subsets.published(session, stored, last.number if last else None)
        return
    functions: dict[str, Callable[..., None]] = {"train": train_round, "select": select_round, "review": review_subset}
    status = _status(place, project, subset)
    told(status, {})

    def heard(name: str, value: object) -> None:
        if name == "progress" and isinstance(value, Mapping):
            told(status, value)

    with step.heard_by(heard):
        functions[kind](place, *work.arguments)


def _status(place: Workplace, project: Project, subset: Subset) -> SubsetGlance:
    with place.store.read() as session:
        return subset_glance(session, projects.by_id(session, project.id), subsets.by_id(session, subset.id))
