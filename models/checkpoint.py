"""Keeps a classifier on disk, as safetensors and a card; a kill at any moment leaves the last good one.

A checkpoint folder holds `card.json` and the weights file that the card names by its digest. The weights are written
first, and the card then replaces the last card in one step: killed before that step, the folder still holds the last
checkpoint; killed after it, the new one. What a kill leaves behind is cleared by the next save. A frozen backbone is
no part of it: it is kept once for all the heads that were trained on it (`models.workshop`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError

from models import card as cards
from models import durable
from models.card import CARD, TRANSFORM, BadCheckpoint, Card, Origin
from models.classifier import Classifier
from models.workshop import Workshop


def save(folder: Path, classifier: Classifier, origin: Origin) -> Path:
    """Write the classifier into its folder, replacing what was there, and return the folder."""
    weights = safetensors.numpy.save(classifier.fitted.tensors())
    card = Card(
        version=classifier.version,
        network=origin.network,
        way=origin.way,
        frozen=classifier.learner.frozen,
        input_size=classifier.learner.input_size,
        transform=TRANSFORM.format(size=classifier.learner.input_size),
        classes=list(classifier.classes),
        temperature=classifier.temperature,
        seed=origin.seed,
        round=origin.round,
        training_set=origin.training_set,
        metrics=dict(origin.metrics),
        weights_sha256=hashlib.sha256(weights).hexdigest(),
        libraries=cards.libraries(),
    )
    with durable.only_writer(folder):
        durable.write(folder / card.weights_name, weights)
        durable.write(folder / CARD, card.text().encode())
        for left_over in {*folder.glob("weights-*"), *folder.glob(f"*{durable.PARTIAL}")}:
            if left_over.name != card.weights_name:
                left_over.unlink()
    return folder


def load(folder: Path, workshop: Workshop) -> Classifier:
    """The classifier kept in the folder, checked against its digest. Raises BadCheckpoint."""
    card, tensors = _read(folder)
    try:
        learner = workshop.learner_of(card)
        fitted = learner.restore(tensors, classes=len(card.classes))
    except (ValueError, ImportError) as error:
        raise BadCheckpoint(f"{folder}: {error}") from error
    return Classifier(learner, fitted, classes=card.classes, version=card.version, temperature=card.temperature)


def prune(folder: Path, *, most_bytes: int, keep: Collection[str]) -> list[str]:
    """Lets go of the oldest weights among the checkpoints in a folder until they fit; returns whose. Cards stay, so
    what a model was remains known; those named in `keep` are never touched."""
    weights = sorted(folder.glob("*/weights-*.safetensors"), key=lambda path: path.stat().st_mtime)
    excess = sum(path.stat().st_size for path in weights) - most_bytes
    gone = []
    for path in weights:
        if excess <= 0:
            break
        if path.parent.name not in keep:
            excess -= path.stat().st_size
            path.unlink()
            gone.append(path.parent.name)
    return gone


def _read(folder: Path) -> tuple[Card, Mapping[str, NDArray[Any]]]:
    card = cards.read(folder)
    try:
        weights = (folder / card.weights_name).read_bytes()
    except FileNotFoundError:  # a save replaced the checkpoint after its card was read, or its weights were pruned
        card = cards.read(folder)
        weights = _bytes(folder / card.weights_name)
    if hashlib.sha256(weights).hexdigest() != card.weights_sha256:
        raise BadCheckpoint(f"{folder / card.weights_name}: the weights do not match the digest in {CARD}")
    try:
        return card, safetensors.numpy.load(weights)
    except SafetensorError as error:
        raise BadCheckpoint(f"{folder / card.weights_name}: {error}") from error


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadCheckpoint(f"{path}: {error.strerror}") from error
