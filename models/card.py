"""The card of a checkpoint: all that is known about a model besides its weights."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

CARD = "card.json"
LIBRARIES = ("torch", "torchvision", "safetensors", "numpy", "pillow")
TRANSFORM = "upright, transparency on white, largest centred square, bilinear to {size} × {size}, RGB"


class BadCheckpoint(ValueError):
    """The folder holds no checkpoint that can be trusted; the message says what is wrong with it."""


@dataclass(frozen=True)
class Origin:
    """How a classifier came about: what its training started from and what came out."""

    network: str
    way: str  # full, head, or own: a learner from another package
    seed: int
    round: int
    training_set: str  # digest of the weighted labels it was trained on
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class Card:
    version: str
    network: str
    way: str
    frozen: str | None
    input_size: int
    transform: str
    classes: list[str]
    temperature: float
    seed: int
    round: int
    training_set: str
    metrics: dict[str, float]
    weights_sha256: str
    libraries: dict[str, str]

    @property
    def weights_name(self) -> str:
        return f"weights-{self.weights_sha256[:16]}.safetensors"

    def text(self) -> str:
        return json.dumps(asdict(self), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read(folder: Path) -> Card:
    """The card alone, without reading the weights. Raises BadCheckpoint."""
    path = folder / CARD
    try:
        fields = json.loads(path.read_bytes())
        card = Card(**fields)
    except OSError as error:
        raise BadCheckpoint(f"{path}: {error.strerror}") from error
    except (UnicodeDecodeError, json.JSONDecodeError, TypeError) as error:
        raise BadCheckpoint(f"{path}: not a card: {error}") from error
    for name, holds in _well_formed(card).items():
        if not holds:
            raise BadCheckpoint(f"{path}: {name} is {fields[name]!r}, which no card can have")
    return card


def libraries() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = installed(name)
        except PackageNotFoundError:
            continue
    return found


def is_digest(value: Any) -> bool:
    """Digests become file names: nothing but hexadecimal digits may pass."""
    return isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef")


def _well_formed(card: Card) -> dict[str, bool]:
    temperature: Any = card.temperature
    return {
        "version": isinstance(card.version, str),
        "network": isinstance(card.network, str),
        "way": card.way in ("full", "head", "own"),
        "frozen": card.frozen is None or (card.way == "own" and isinstance(card.frozen, str)) or is_digest(card.frozen),
        "temperature": isinstance(temperature, int | float) and 0 < temperature < float("inf"),
        "classes": isinstance(card.classes, list)
        and len(set(map(str, card.classes))) == len(card.classes) >= 2
        and all(isinstance(name, str) for name in card.classes),
        "weights_sha256": is_digest(card.weights_sha256),
    }
