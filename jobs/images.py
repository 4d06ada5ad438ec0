"""From a task to its pixels: fetched from Label Studio once, kept on disk, decoded; a bad image is set aside."""

from __future__ import annotations

import hashlib
import os
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
from studio.errors import Forbidden, NotFound, Refused
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
        good = [place for place, image in enumerate(found) if not isinstance(image, str)]
        pixels = [image for image in found if not isinstance(image, str)]
        return Loaded(
            images=np.stack(pixels) if pixels else np.zeros((0, 3, self._size, self._size), np.uint8),
            good=np.array(good, np.int64),
            bad={place: image for place, image in enumerate(found) if isinstance(image, str)},
        )

    def _one(self, data: Mapping[str, Any]) -> NDArray[np.uint8] | str:
        address = data.get(self._field)
        if not isinstance(address, str) or not address:
            return f"the task's field {self._field!r} holds no address"
        try:
            return decode(self._bytes(address), size=self._size)
        except (BadImage, ForeignFile, FileTooLarge, NotFound, Forbidden, Refused) as error:
            return str(error)

    def _bytes(self, address: str) -> bytes:
        kept = self._folder / hashlib.sha256(address.encode()).hexdigest()
        try:
            return kept.read_bytes()
        except FileNotFoundError:
            content = fetch(self._client, address)
        self._folder.mkdir(parents=True, exist_ok=True)
        half = kept.with_suffix(f".{os.getpid()}")
        half.write_bytes(content)
        half.replace(kept)
        return content
