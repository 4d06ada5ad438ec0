"""Where pre-trained weights come from: a package, a folder, or a download into that folder."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn

from models import efficientnet_lite, networks
from models.backbones import torchvision_models, weights_file
from models.backbones.backbone import Backbone
from models.backbones.download import NotFetched, fetch
from models.backbones.weights_file import BadWeights as BadWeights
from models.efficientnet_lite import MissingPackage

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pretrained:
    """The weights of a backbone, the file they came from, and what tells them from all others."""

    tensors: Mapping[str, Tensor] = field(repr=False)
    source: str
    digest: str

    def fill(self, backbone: nn.Module) -> None:
        """Put copies of them into a backbone of the same network. Raises BadWeights."""
        try:
            backbone.load_state_dict({name: tensor.clone() for name, tensor in self.tensors.items()}, assign=True)
        except RuntimeError as error:
            raise BadWeights(f"{self.source} does not fit: {error}") from error


def find(name: str, folder: Path, *, download: bool = True) -> Pretrained | None:
    """The named network's pre-trained weights.

    EfficientNet-Lite0's are those of its package. Others are looked for in the folder, as `<name>.safetensors`,
    `<name>.pth` or under the name torchvision gives the file, and else downloaded there. None, after a warning, where
    they cannot be had; and for small-cnn, which has none. Raises BadWeights, MissingPackage and UnknownNetwork.
    """
    networks.check(name)
    if name == "small-cnn":
        return None
    path = _on_disk(name, folder)
    if path is None:
        preset = torchvision_models.presets(name)[0]
        path = folder / preset.file
        try:
            if not download:
                raise NotFetched("downloads are off")
            fetch(preset.url, path)
        except NotFetched as error:
            log.warning(
                "%s has no pre-trained weights here (%s): random weights are used, which need many more labels. "
                "Put the file %s into the folder %s; it is found at %s",
                *(name, error, preset.file, folder, preset.url),
            )
            return None
    return _read(name, path)


def status(name: str, folder: Path) -> str:
    """Where `find` would take the weights from, in one line; downloads nothing."""
    networks.check(name)
    if name == "small-cnn":
        return "none needed"
    try:
        path = _on_disk(name, folder)
    except MissingPackage as error:
        return f"none: {error}"
    if path is None:
        preset = torchvision_models.presets(name)[0]
        return f"to be downloaded: {preset.file}"
    return f"package {efficientnet_lite.PACKAGE}" if name == efficientnet_lite.NAME else f"in {path}"


def digest_of(backbone: nn.Module, name: str, input_size: int) -> str:
    """Equal for backbones that make the same features of the same images: the network's name, its input size, and
    names, types, shapes and bytes of all tensors; sha256, in hexadecimal."""
    digest = hashlib.sha256(f"{name} {input_size}\n".encode())
    for key, tensor in sorted(backbone.state_dict().items()):
        digest.update(f"{key} {tensor.dtype} {list(tensor.shape)}\n".encode())
        digest.update(tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def _on_disk(name: str, folder: Path) -> Path | None:
    if name == efficientnet_lite.NAME:
        return efficientnet_lite.weights_file()
    # what was put there by hand comes before what was downloaded
    files = [f"{name}.safetensors", f"{name}.pth", *(preset.file for preset in torchvision_models.presets(name))]
    return next((folder / file for file in files if (folder / file).is_file()), None)


def _read(name: str, path: Path) -> Pretrained:
    with torch.device("meta"):  # no memory and no random numbers for weights that are replaced at once
        backbone = cast(Backbone, networks.backbone(name))
    weights_file.load(path, backbone)
    return Pretrained(backbone.state_dict(), str(path), digest_of(backbone, name, networks.input_size(name)))
