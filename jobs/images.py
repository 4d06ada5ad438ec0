"""From a task to its pixels: fetched from Label Studio once, kept on disk, decoded; a bad image is set aside."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.images import BadImage, decode
from store.tables import Project
from studio.client import Client
from studio.errors import Forbidden, NotFound, Refused, StudioError
from studio.files import FileTooLarge, ForeignFile, fetch

FETCHERS = 4


@dataclass(frozen=True)
class Loaded:
    images: NDArray[np.uint8]
    """Those that could be read, in the order asked for."""
    good: NDArray[np.int64]
    """Their places among the tasks asked for."""
    bad: dict[int, str]
    """Place → why it could not be read."""


class NothingServed(StudioError):
    """Not one image of many can be fetched: a storage is away, and no image is to blame. Worth another try later."""


@dataclass(frozen=True)
class _Refused:
    reason: str

    def __str__(self) -> str:
        return self.reason


class ImageSource:
    """The images of one project at one size."""

    def __init__(self, project: Project, client: Client, cache: Path, size: int) -> None:
        self._field = project.field
        self._client = client
        self._folder = cache / str(project.id)
        self._size = size

    def load(self, tasks: Sequence[Mapping[str, Any]]) -> Loaded:
        """The images of the tasks with these data. A server that does not answer raises; a bad image does not."""
        with ThreadPoolExecutor(FETCHERS) as threads:
            found = list(threads.map(self._one, tasks))
        refused = [image.reason for image in found if isinstance(image, _Refused)]
        if len(refused) == len(tasks) > 1:
            raise NothingServed(f"Label Studio serves none of {len(tasks)} images; the first: {refused[0]}")
        good = [place for place, image in enumerate(found) if isinstance(image, np.ndarray)]
        pixels = [image for image in found if isinstance(image, np.ndarray)]
        return Loaded(
            images=np.stack(pixels) if pixels else np.zeros((0, 3, self._size, self._size), np.uint8),
            good=np.array(good, np.int64),
            bad={place: str(image) for place, image in enumerate(found) if not isinstance(image, np.ndarray)},
        )

    def _one(self, data: Mapping[str, Any]) -> NDArray[np.uint8] | str | _Refused:
        address = data.get(self._field)
        if not isinstance(address, str) or not address:
            return f"the task's field {self._field!r} holds no address"
        try:
            return decode(self._bytes(address), size=self._size)
        except (BadImage, ForeignFile, FileTooLarge) as error:
            return str(error)
        except (NotFound, Forbidden, Refused) as error:
            return _Refused(str(error))

    def _bytes(self, address: str) -> bytes:
        kept = self._folder / hashlib.sha256(address.encode()).hexdigest()
        try:
            return kept.read_bytes()
        except FileNotFoundError:
            content = fetch(self._client, address)
        self._folder.mkdir(parents=True, exist_ok=True)
        descriptor, half = tempfile.mkstemp(dir=self._folder)  # threads and hosts fetch the same image at once
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(half).replace(kept)
        return content
