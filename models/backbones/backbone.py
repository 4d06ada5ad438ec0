"""A classifier of images without its classification layer."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Backbone(nn.Module):
    """Features (n, features), float32, of uint8 images (n, 3, s, s).

    The body sees (pixel − mean) / scale, channel by channel. What was cut off it is named by `cut`: the layer itself,
    or all that begins with it.
    """

    mean: Tensor
    scale: Tensor

    def __init__(
        self, classifier: nn.Module, *, mean: Sequence[float], scale: Sequence[float], cut: str | None = None
    ) -> None:
        super().__init__()
        self.cut = cut or _last_layer(classifier)
        self.features = _width(classifier.get_submodule(self.cut))
        classifier.set_submodule(self.cut, nn.Identity())
        self.body = classifier
        # on the CPU even where the weights are made without memory: no file of weights has them
        self.register_buffer("mean", torch.tensor(mean, device="cpu").view(-1, 1, 1), persistent=False)
        self.register_buffer("scale", torch.tensor(scale, device="cpu").view(-1, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.body((images.to(torch.float32) - self.mean) / self.scale)
        return features


def _last_layer(classifier: nn.Module) -> str:
    """The classification layer: linear, or a convolution before the pooling, as in SqueezeNet."""
    layers: list[str] = [
        name for name, module in classifier.named_modules() if isinstance(module, nn.Linear | nn.Conv2d)
    ]
    return layers[-1]


def _width(cut: nn.Module) -> int:
    """The number of features that what was cut off used to read."""
    for module in cut.modules():
        if isinstance(module, nn.Linear):
            return module.in_features
        if isinstance(module, nn.Conv2d):
            return module.in_channels
    raise ValueError("no layer was cut off that reads features")
