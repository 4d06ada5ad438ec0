"""The images of a project's tasks, each fetched and decoded once; a bad one is set aside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from jobs.images.destination import Resolve, resolve
from jobs.images.fetcher import Fetcher
from jobs.images.folder import Folder
from jobs.images.origins import Origins
from jobs.images.reasons import Away, NotServed, SetAside
from jobs.workplace import Workplace
from models.images import BadImage, decode
from models.shelf import KEY_BYTES, Key, Shelf, key_of
from models.shelf_view import View, joined
from store.tables import Project
from studio.client import Client
from studio.errors import Unreachable

FETCHERS = 8
"""At once, while somebody waits for the images."""
BATCH = 128
"""Images fetched before they are put on the shelf together."""
PIXEL_BYTES = 4 * 2**30
ADDRESS_BYTES = 128 * 2**20
"""Room for four million addresses."""


@dataclass(frozen=True)
class Loaded:
    images: View
    """Those that could be read, in the order asked for. They lie on disk, so there may be more than memory holds."""
    good: NDArray[np.int64]
    """Their places among the tasks asked for."""
    keys: list[Key]
    """What stands for the content of each: equal files have equal keys, under whatever address."""
    bad: dict[int, str]
    """Place → why it cannot be read."""
    away: dict[int, str]
    """Place → why it cannot be had just now."""


class NothingServed(Unreachable):
    """Not one image of many can be fetched: a storage is away, and no image is to blame. Worth another try later."""


class Fetches(Protocol):
    """Gets the bytes behind an address; the key stands for the address and, where that can be told, its state."""

    def fetch(self, address: str) -> bytes: ...
    def key(self, address: str) -> Key: ...


@dataclass(frozen=True)
class _Read:
    address: Key
    """As it was before the image was read: what has changed since is found under another."""
    key: Key
    pixels: NDArray[np.uint8]


@dataclass
class _Loading:
    """What is found out while images are loaded."""

    places: list[int] = field(default_factory=list)
    keys: list[Key] = field(default_factory=list)
    bad: dict[int, SetAside] = field(default_factory=dict)
    fetched: int = 0

    def check(self, others: int) -> None:
        """Where not one of several images that had to be fetched is served: few are left out this time, but for most of
        what is wanted it is worth waiting."""
        refused = {place: str(reason) for place, reason in self.bad.items() if isinstance(reason, NotServed)}
        if not len(refused) == self.fetched > 1:
            return
        if len(refused) > len(self.places) + others:
            first = next(iter(refused.values()))
            raise NothingServed(f"none of {self.fetched} images is served; the first: {first}")
        self.bad |= {place: Away(reason) for place, reason in refused.items()}  # who knows whose fault it is


class ImageSource:
    """The images of one project at one size."""

    def __init__(
        self,
        project: Project,
        client: Client | None,
        cache: Path,
        size: int,
        *,
        prefixes: Sequence[str] = (),
        most_bytes: int = PIXEL_BYTES,
        fetchers: int = FETCHERS,
        resolver: Resolve = resolve,
    ) -> None:
        """Besides Label Studio, images may come from addresses under these prefixes; raises OriginError for a prefix
        that cannot be used. Without a client, they come from the project's own folder and from nowhere else. The cache,
        shared by all projects, keeps `most_bytes` of pixels of this size."""
        self._field = project.field
        self._size = size
        self._fetchers = fetchers
        self._fetcher = fetcher_of(project, client, prefixes, resolver=resolver)
        self._addresses = Shelf(cache / "addresses", (KEY_BYTES,), np.uint8, most_bytes=ADDRESS_BYTES)
        some_batches = 4 * BATCH * 3 * size * size
        self._pixels = Shelf(
            cache / f"pixels-{size}", (3, size, size), np.uint8, most_bytes=max(most_bytes, some_batches)
        )

    @classmethod
    def of(
        cls,
        place: Workplace,
        project: Project,
        size: int,
        *,
        most_bytes: int | None = None,
        fetchers: int = FETCHERS,
    ) -> ImageSource:
        """As this installation is set up."""
        settings = place.settings
        return cls(
            project,
            None if project.root else place.studio(project).client,
            settings.image_cache,
            size,
            prefixes=settings.image_prefixes,
            most_bytes=most_bytes or settings.shelf_bytes,
            fetchers=fetchers,
        )

    def keys(self, tasks: Sequence[Mapping[str, Any]]) -> list[Key | None]:
        """What stands for each image's content, as far as it was fetched before; nothing is fetched."""
        addressed = [(place, address) for place, data in enumerate(tasks) if (address := self._address(data))]
        found, rows = self._addresses.look_up([self._fetcher.key(address) for _, address in addressed])
        content = rows[:].tobytes()
        known: list[Key | None] = [None] * len(tasks)
        for row, index in enumerate(found.tolist()):
            known[addressed[index][0]] = content[row * KEY_BYTES : (row + 1) * KEY_BYTES]
        return known

    def load(self, tasks: Sequence[Mapping[str, Any]], *, others: int = 0) -> Loaded:
        """The images of the tasks with these data. A server that does not answer raises; a bad image does not.
        `others` is how many more there are to go on with if none of these is served."""
        loading = _Loading()
        images = joined(self._views(tasks, loading))
        loading.check(others)
        order = np.argsort(np.array(loading.places, np.int64))
        return Loaded(
            images=images.take(order),
            good=np.array(loading.places, np.int64)[order],
            keys=[loading.keys[row] for row in order.tolist()],
            bad={place: str(why) for place, why in sorted(loading.bad.items()) if not isinstance(why, Away)},
            away={place: str(why) for place, why in sorted(loading.bad.items()) if isinstance(why, Away)},
        )

    def _views(self, tasks: Sequence[Mapping[str, Any]], loading: _Loading) -> Iterator[View]:
        """The images that are on the shelf, then the others, batch by batch as they are put there."""
        known = [(place, key) for place, key in enumerate(self.keys(tasks)) if key is not None]
        found, view = self._pixels.look_up([key for _, key in known])
        for index in found.tolist():
            loading.places.append(known[index][0])
            loading.keys.append(known[index][1])
        yield view
        wanted = self._wanted(tasks, loading)
        loading.fetched = sum(map(len, wanted.values()))
        outcomes: dict[str, _Read | SetAside] = {}
        for address, outcome in self._outcomes(wanted):
            outcomes[address] = outcome
            if len(outcomes) == BATCH:
                yield from self._keep(outcomes, wanted, loading)
                outcomes = {}
        yield from self._keep(outcomes, wanted, loading)

    def _wanted(self, tasks: Sequence[Mapping[str, Any]], loading: _Loading) -> dict[str, list[int]]:
        """The places of each address whose image is not there yet."""
        here = set(loading.places)
        wanted: dict[str, list[int]] = {}
        for place, data in enumerate(tasks):
            if place in here:
                continue
            if address := self._address(data):
                wanted.setdefault(address, []).append(place)
            else:
                loading.bad[place] = no_address(self._field)
        return wanted

    def _outcomes(self, addresses: Iterable[str]) -> Iterator[tuple[str, _Read | SetAside]]:
        """As they come in, so that a slow host holds up nobody else."""
        threads = ThreadPoolExecutor(self._fetchers)
        ahead, under_way = iter(addresses), dict[Future[_Read | SetAside], str]()
        try:
            while True:
                for address in islice(ahead, 2 * self._fetchers - len(under_way)):
                    under_way[threads.submit(self._read, address)] = address
                if not under_way:
                    return
                for done in wait(under_way, return_when=FIRST_COMPLETED).done:
                    yield under_way.pop(done), done.result()
        finally:
            threads.shutdown(cancel_futures=True)

    def _read(self, address: str) -> _Read | SetAside:
        try:
            key = self._fetcher.key(address)
            content = self._fetcher.fetch(address)
            return _Read(key, key_of(content), decode(content, size=self._size))
        except SetAside as reason:
            return reason
        except BadImage as error:
            return SetAside(str(error))

    def _keep(
        self, outcomes: Mapping[str, _Read | SetAside], wanted: Mapping[str, Sequence[int]], loading: _Loading
    ) -> Iterator[View]:
        read: dict[str, _Read] = {}
        keys: list[Key] = []
        for address in sorted(outcomes, key=lambda address: wanted[address][0]):  # neighbours are read faster later
            outcome, places = outcomes[address], wanted[address]
            if isinstance(outcome, SetAside):
                loading.bad |= dict.fromkeys(places, outcome)
            else:
                read[address] = outcome
                loading.places.extend(places)
                keys.extend([outcome.key] * len(places))
        loading.keys.extend(keys)
        if read:
            yield self._shelve(read, keys)

    def _shelve(self, read: Mapping[str, _Read], keys: Sequence[Key]) -> View:
        content = [one.key for one in read.values()]
        pixels = np.stack([one.pixels for one in read.values()])
        while True:
            self._pixels.put(content, pixels)
            found, view = self._pixels.look_up(keys)
            if len(found) == len(keys):  # else others have filled the shelf since
                break
        rows = np.frombuffer(b"".join(content), np.uint8).reshape(-1, KEY_BYTES)
        self._addresses.put([one.address for one in read.values()], rows)
        return view

    def _address(self, data: Mapping[str, Any]) -> str | None:
        return address_in(data, self._field)


def address_in(data: Mapping[str, Any], field: str) -> str | None:
    """Where the task's image is, if this field of it can be an address at all."""
    address = data.get(field)
    if not isinstance(address, str) or not address:
        return None
    try:
        address.encode()
    except UnicodeEncodeError:  # half a pair of surrogates, which JSON can hold
        return None
    return address


def no_address(field: str) -> SetAside:
    return SetAside(f"the task's field {field!r} holds no address")


def fetcher_of(
    project: Project, client: Client | None, prefixes: Sequence[str], *, resolver: Resolve = resolve
) -> Fetches:
    """Whoever gets the bytes of a project's images. Raises OriginError for a prefix that cannot be used."""
    origins = Origins(prefixes)
    if client is not None:
        return Fetcher(client, origins, resolver=resolver)
    if project.root is None:
        raise ValueError(f"project {project.id} is one of Label Studio: a client is needed to get its images")
    return Folder(project.root)
