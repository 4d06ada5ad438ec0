"""Fashion-MNIST as its four compressed idx files hold it, in the shape that the small network reads."""

from __future__ import annotations

import gzip
import hashlib
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FOLDER = Path("/usr/share/datasets/fashion-mnist")
FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)


class NoFashion(ValueError):
    """The files are not there or not what they should be; the message says where to get them."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """The labelled pool, and a test set that no rule ever sees. Images: uint8 (n, 3, 28, 28)."""

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.int64]
    classes: int = 10
    digest: str = ""  # of all content: results of other images must not be taken for results of these


@cache  # once per process, however many runs it makes
def read(folder: Path) -> Labelled:
    """Raises NoFashion."""
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise NoFashion(
            f"Fashion-MNIST is missing: {folder} has no {', '.join(missing)}. Install Debian's package of it with "
            "`apt-get install dataset-fashion-mnist`, or download the four files from "
            "https://github.com/zalandoresearch/fashion-mnist and name their folder with --fashion FOLDER."
        )
    train, train_labels, test, test_labels = arrays = [_array(folder / name) for name in FILES]
    for images, labels in ((train, train_labels), (test, test_labels)):
        if images.shape[1:] != (28, 28) or labels.shape != images.shape[:1]:
            raise NoFashion(f"{folder}: images of shape {images.shape} with labels of shape {labels.shape}")
    return Labelled(
        three(train),
        train_labels.astype(np.int64),
        three(test),
        test_labels.astype(np.int64),
        digest=hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()[:16],
    )


def three(grey: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Grey images (n, s, s) as colour ones (n, 3, s, s); a view, so the pool is in memory once and not three times."""
    count, *sides = grey.shape
    return np.broadcast_to(grey[:, None], (count, 3, *sides))


def _array(path: Path) -> NDArray[np.uint8]:
    """An idx file: two zeros, 8 for bytes, the number of dimensions, each as 4 bytes, then the content."""
    try:
        content = gzip.decompress(path.read_bytes())
    except (OSError, EOFError) as error:
        raise NoFashion(f"{path} cannot be read: {error}") from error
    dimensions = content[3] if content[:3] == b"\0\0\x08" else 0
    start = 4 + 4 * dimensions
    shape = [int.from_bytes(content[place : place + 4], "big") for place in range(4, start, 4)]
    if not dimensions or len(content) != start + math.prod(shape):
        raise NoFashion(f"{path} is not a whole idx file of bytes")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)
