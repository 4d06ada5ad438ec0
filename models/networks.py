"""The networks that can be trained, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from models import small_cnn


class UnknownNetwork(ValueError):
    """No network has this name; the message names those that exist."""


@dataclass(frozen=True)
class Blueprint:
    """How a network is made, the side of the square images it reads, and the CPU threads it trains on.

    Every network maps uint8 images (n, 3, input_size, input_size) to logits (n, classes); scaling the pixels is
    its own business.
    """

    make: Callable[[int], nn.Module]
    input_size: int
    threads: int | None = None  # None: as many as torch takes by itself


_BLUEPRINTS = {
    # Too little work to share out: a second thread saves a quarter of the time on an idle machine and multiplies it on
    # a busy one, where each waits for the other. One thread also gives the same network whatever the number of cores.
    "small-cnn": Blueprint(small_cnn.SmallCNN, small_cnn.INPUT_SIZE, threads=1),
}


def names() -> list[str]:
    return sorted(_BLUEPRINTS)


def build(name: str, *, classes: int) -> nn.Module:
    """A new network with random weights, drawn from torch's current random state."""
    if classes < 2:
        raise ValueError(f"a classifier needs at least 2 classes, not {classes}")
    return _blueprint(name).make(classes)


def input_size(name: str) -> int:
    return _blueprint(name).input_size


def threads(name: str) -> int | None:
    return _blueprint(name).threads


def _blueprint(name: str) -> Blueprint:
    try:
        return _BLUEPRINTS[name]
    except KeyError:
        raise UnknownNetwork(f"unknown network {name!r}: known are {', '.join(names())}") from None
