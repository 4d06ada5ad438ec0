"""The images of a project's tasks as they are: their own bytes, fetched as for training but neither decoded nor
kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from jobs.images.reasons import SetAside
from jobs.images.source import FETCHERS, address_in, fetcher_of, no_address
from models.images import BadImage, kind_of
from store.tables import Project
from studio.client import Client

Thing = TypeVar("Thing")
_SUFFIXES = {"JPEG": "jpg", "MPO": "jpg", "TIFF": "tif", "PPM": "ppm", "JPEG2000": "jp2"}


@dataclass(frozen=True)
class Original:
    content: bytes
    suffix: str
    """Of its kind, by what it holds, whatever its address ends in."""


class Originals:
    def __init__(self, project: Project, client: Client | None, prefixes: Sequence[str] = ()) -> None:
        """As for an ImageSource: from Label Studio and from below the prefixes, or from the project's own folder."""
        self._field = project.field
        self._fetcher = fetcher_of(project, client, prefixes)

    def beside(self, things: Iterable[tuple[Thing, Mapping[str, Any]]]) -> Iterator[tuple[Thing, Original | SetAside]]:
        """Each thing with the image of its task, in their order; a few are fetched ahead, and no more are held. A
        server that does not answer raises."""
        with ThreadPoolExecutor(FETCHERS) as threads:
            ahead, under_way = iter(things), deque[tuple[Thing, Future[Original | SetAside]]]()
            try:
                while True:
                    for thing, data in islice(ahead, 2 * FETCHERS - len(under_way)):
                        under_way.append((thing, threads.submit(self._fetch, data)))
                    if not under_way:
                        return
                    thing, fetched = under_way.popleft()
                    yield thing, fetched.result()
            finally:
                threads.shutdown(wait=False, cancel_futures=True)

    def _fetch(self, data: Mapping[str, Any]) -> Original | SetAside:
        address = address_in(data, self._field)
        if address is None:
            return no_address(self._field)
        try:
            content = self._fetcher.fetch(address)
            kind = kind_of(content)
        except SetAside as reason:
            return reason
        except BadImage as error:
            return SetAside(str(error))
        return Original(content, _SUFFIXES.get(kind, kind.lower()))
