"""Any backbone of the timm library, frozen, under the head and the training that the backend has anyway."""

from __future__ import annotations

from pathlib import Path

import timm
import torch
from torch import Tensor, nn

from models.device import choose
from models.heads import LinearHead
from models.network_learner import HeadLearner
from models.pretrained import digest_of
from models.recipe import HEAD

NAME = "mobilenetv3_small_100"


class Scaled(nn.Module):
    """Images come as bytes; a backbone scales them to what it was trained on."""

    def __init__(self, body: nn.Module, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
        super().__init__()
        self.body = body
        self.register_buffer("mean", 255 * torch.tensor(mean).view(3, 1, 1), persistent=False)
        self.register_buffer("std", 255 * torch.tensor(std).view(3, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        described: Tensor = self.body((images.float() - self.mean) / self.std)
        return described


def make(*, weights_folder: Path, device: str) -> HeadLearner:
    """The entry point's factory. Weights are read from `weights_folder`; without the file timm downloads them."""
    file = weights_folder / f"{NAME}.safetensors"
    body = timm.create_model(
        NAME, num_classes=0, pretrained=True, pretrained_cfg_overlay={"file": str(file)} if file.exists() else None
    )
    config = timm.data.resolve_model_data_config(body)
    backbone = Scaled(body, config["mean"], config["std"]).eval()
    size = config["input_size"][1]
    return HeadLearner(
        lambda: backbone,
        lambda classes: LinearHead(body.head_hidden_size, classes),
        frozen=digest_of(backbone, f"timm/{NAME}", size),
        input_size=size,
        recipe=HEAD,
        compute=choose(device),
    )
