"""The last part of a network: from features (n, d) to logits (n, classes)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

SMALL = 0.1


class LinearHead(nn.Module):
    """One linear layer on standardised features; until `standardise` is called, on the features as they are.

    It starts with a tenth of the usual random weights: the full ones are noise that few labels do not train away, and
    none at all would leave two heads of one training set with nothing to disagree about.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("scale", torch.ones(features))
        self.linear = nn.Linear(features, classes)
        with torch.no_grad():
            self.linear.weight.mul_(SMALL)
            self.linear.bias.zero_()

    @torch.no_grad()
    def standardise(self, features: Tensor) -> None:
        """From now on, features like these (n, d) reach the linear layer with mean 0 and standard deviation 1.

        One that hardly varies is divided by a tenth of what the others are divided by on average: it may only be rare,
        and must not become huge in an image that has it.
        """
        spread = features.std(dim=0, correction=0)
        least = 0.1 * spread.mean()
        self.mean.copy_(features.mean(dim=0))
        self.scale.copy_(spread.clamp_min(least) if least > 0 else torch.ones_like(spread))

    def forward(self, features: Tensor) -> Tensor:
        if self.training:
            logits: Tensor = self.linear((features - self.mean) / self.scale)
            return logits
        # the same with the standardisation moved into the layer: a million rows need not be copied twice
        weight = self.linear.weight / self.scale
        return functional.linear(features, weight, self.linear.bias - weight @ self.mean)


def head_for(name: str, *, features: int, classes: int) -> nn.Module:
    """The head of the named network, with random weights."""
    return _OF_THEIR_OWN.get(name, LinearHead)(features, classes)


def _small_cnn(features: int, classes: int) -> nn.Module:
    return nn.Sequential(nn.Dropout(0.5), nn.Linear(features, classes))


def _vgg16(features: int, classes: int) -> nn.Module:
    return _xavier(
        nn.Sequential(
            nn.Linear(features, 4096),
            nn.ReLU(),
            nn.Dropout(),
            nn.Linear(4096, 4096),
            nn.ReLU(),
            nn.Dropout(),
            nn.Linear(4096, classes),
        )
    )


def _resnet101(features: int, classes: int) -> nn.Module:
    return _xavier(nn.Sequential(nn.Linear(features, 128), nn.ReLU(), nn.Linear(128, classes)))


def _xavier(head: nn.Sequential) -> nn.Sequential:
    for layer in head:
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
    return head


_OF_THEIR_OWN: dict[str, Callable[[int, int], nn.Module]] = {
    "small-cnn": _small_cnn,
    # those of the paper
    "vgg16": _vgg16,
    "resnet101": _resnet101,
}
