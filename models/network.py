"""What every network is: a backbone that makes features of images, and a head that makes logits of features."""

from __future__ import annotations

from torch import Tensor, nn


class Network(nn.Module):
    """Logits (n, classes) of uint8 images (n, 3, s, s).

    The backbone maps the images to features (n, features), float32; scaling the pixels is its own business. The head
    maps these to the logits, so it can also be trained alone on features that were kept.
    """

    def __init__(self, backbone: nn.Module, head: nn.Module, *, features: int) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head
        self.features = features

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.backbone(images))
        return logits
