"""Keeps a classifier on disk, as safetensors and a card; a kill at any moment leaves the last good one.

A checkpoint folder holds `card.json` and the weights file that the card names by its digest. The weights are
written first, and the card then replaces the last card in one step: killed before that step, the folder still
holds the last checkpoint; killed after it, the new one. What a kill leaves behind is cleared by the next save.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError

from models import networks
from models.classifier import Classifier

CARD = "card.json"
LIBRARIES = ("torch", "torchvision", "safetensors", "numpy", "pillow")


class BadCheckpoint(ValueError):
    """The folder holds no checkpoint that can be trusted; the message says what is wrong with it."""


@dataclass(frozen=True)
class Origin:
    """How a classifier came about: what its training started from and what came out."""

    seed: int
    round: int
    training_set: str  # digest of the weighted labels it was trained on
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class Card:
    """All that is known about a checkpoint besides its weights."""

    version: str
    network: str
    input_size: int
    classes: list[str]
    seed: int
    round: int
    training_set: str
    metrics: dict[str, float]
    weights_sha256: str
    libraries: dict[str, str]


def save(folder: Path, classifier: Classifier, origin: Origin) -> Path:
    """Write the classifier into its folder, replacing what was there, and return the folder."""
    tensors = {name: tensor.contiguous().cpu() for name, tensor in classifier.network.state_dict().items()}
    weights = safetensors.torch.save(tensors)
    card = Card(
        version=classifier.version,
        network=classifier.network_name,
        input_size=classifier.input_size,
        classes=list(classifier.classes),
        seed=origin.seed,
        round=origin.round,
        training_set=origin.training_set,
        metrics=dict(origin.metrics),
        weights_sha256=hashlib.sha256(weights).hexdigest(),
        libraries={"python": platform.python_version()} | {name: installed(name) for name in LIBRARIES},
    )
    text = json.dumps(asdict(card), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    with _only_writer(folder):
        _write_durably(folder / _weights_name(card), weights)
        _write_durably(folder / CARD, text.encode())
        for left_over in {*folder.glob("weights-*"), *folder.glob("*.partial")}:
            if left_over.name != _weights_name(card):
                left_over.unlink()
    return folder


def load(folder: Path, *, device: str | torch.device | None = None) -> Classifier:
    """The classifier kept in the folder, checked against its digest. Raises BadCheckpoint."""
    card = read_card(folder)
    try:
        weights = (folder / _weights_name(card)).read_bytes()
    except FileNotFoundError:  # a save replaced the checkpoint after its card was read
        card = read_card(folder)
        weights = _read(folder / _weights_name(card))
    if hashlib.sha256(weights).hexdigest() != card.weights_sha256:
        raise BadCheckpoint(f"{folder / _weights_name(card)}: the weights do not match the digest in {CARD}")
    try:
        with torch.device("meta"):  # no memory and no random numbers for weights that are replaced at once
            network = networks.build(card.network, classes=len(card.classes))
        network.load_state_dict(safetensors.torch.load(weights), assign=True)
    except (ValueError, RuntimeError, SafetensorError) as error:
        raise BadCheckpoint(f"{folder}: the weights do not fit the network: {error}") from error
    return Classifier(network, network_name=card.network, classes=card.classes, version=card.version, device=device)


def read_card(folder: Path) -> Card:
    """The card alone, without reading the weights. Raises BadCheckpoint."""
    path = folder / CARD
    try:
        fields = json.loads(_read(path))
        card = Card(**fields)
    except (UnicodeDecodeError, json.JSONDecodeError, TypeError) as error:
        raise BadCheckpoint(f"{path}: not a card: {error}") from error
    for name, holds in _well_formed(card).items():
        if not holds:
            raise BadCheckpoint(f"{path}: {name} is {fields[name]!r}, which no card can have")
    return card


def _well_formed(card: Card) -> dict[str, bool]:
    digest: Any = card.weights_sha256
    return {
        "version": isinstance(card.version, str),
        "network": isinstance(card.network, str),
        "classes": isinstance(card.classes, list)
        and len(set(map(str, card.classes))) == len(card.classes) >= 2
        and all(isinstance(name, str) for name in card.classes),
        # the digest becomes a file name: nothing but hexadecimal digits may pass
        "weights_sha256": isinstance(digest, str) and len(digest) == 64 and set(digest) <= set("0123456789abcdef"),
    }


def _weights_name(card: Card) -> str:
    return f"weights-{card.weights_sha256[:16]}.safetensors"


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadCheckpoint(f"{path}: {error.strerror}") from error


def _write_durably(path: Path, content: bytes) -> None:
    """After this returns, the file is whole on the disk; until then, what was there before is untouched."""
    partial = path.with_name(f"{path.name}.partial")
    with partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    with _opened(path.parent) as directory:
        os.fsync(directory)


@contextmanager
def _only_writer(folder: Path) -> Iterator[None]:
    """One save at a time: a worker taken for dead may wake up while its successor writes the same folder."""
    with _opened(folder) as directory:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    directory = os.open(folder, os.O_RDONLY)
    try:
        yield directory
    finally:
        os.close(directory)
