"""The networks that can be trained, by name. Naming one needs no torch; building one does."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from torch import nn


class UnknownNetwork(ValueError):
    """No network has this name; the message names those that exist."""


@dataclass(frozen=True)
class Blueprint:
    """How a network is made, the side of the square images it reads, and the CPU threads it trains on.

    Every network maps uint8 images (n, 3, input_size, input_size) to logits (n, classes); scaling the pixels is
    its own business.
    """

    module: str  # of this package, imported when the network is first built
    factory: str  # its function or class that takes the number of classes
    input_size: int
    threads: int | None = None  # None: as many as torch takes by itself


_BLUEPRINTS = {
    # Too little work to share out: a second thread saves a quarter of the time on an idle machine and multiplies it on
    # a busy one, where each waits for the other. One thread also gives the same network whatever the number of cores.
    "small-cnn": Blueprint("models.small_cnn", "SmallCNN", input_size=28, threads=1),
}


def names() -> list[str]:
    return sorted(_BLUEPRINTS)


def build(name: str, *, classes: int) -> nn.Module:
    """A new network with random weights, drawn from torch's current random state."""
    if classes < 2:
        raise ValueError(f"a classifier needs at least 2 classes, not {classes}")
    blueprint = _blueprint(name)
    factory = getattr(importlib.import_module(blueprint.module), blueprint.factory)
    return cast("nn.Module", factory(classes))


def input_size(name: str) -> int:
    return _blueprint(name).input_size


def threads(name: str) -> int | None:
    return _blueprint(name).threads


def _blueprint(name: str) -> Blueprint:
    try:
        return _BLUEPRINTS[name]
    except KeyError:
        raise UnknownNetwork(f"unknown network {name!r}: known are {', '.join(names())}") from None
