"""The frozen backbones that heads were trained on, kept once each under their digest: a checkpoint outlives the file or
package its backbone came from, and a hundred rounds of heads need one copy."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import safetensors.torch
from safetensors import SafetensorError
from torch import nn

from models import durable, networks, pretrained, training
from models.card import BadCheckpoint
from models.device import Compute
from models.pretrained import Pretrained

SEED = 0
"""Of a backbone with random weights: the same in every round and on every host."""


def keep(folder: Path, backbone: Pretrained) -> None:
    path = _path(folder, backbone.digest)
    if path.exists():
        return
    tensors = {name: tensor.contiguous().cpu() for name, tensor in backbone.tensors.items()}
    with durable.only_writer(folder):
        durable.write(path, safetensors.torch.save(tensors))


def is_kept(folder: Path, digest: str) -> bool:
    return _path(folder, digest).exists()


@lru_cache(maxsize=2)  # a web server goes through many heads of one backbone
def load(folder: Path, network: str, digest: str) -> nn.Module:
    """The backbone of the named network with this digest. Raises BadCheckpoint where it is gone or damaged."""
    path = _path(folder, digest)
    try:
        tensors = safetensors.torch.load(path.read_bytes())
        backbone = networks.backbone(network, pretrained=Pretrained(tensors, str(path), digest))
    except OSError as error:
        raise BadCheckpoint(f"{path}: the frozen backbone a model was trained on: {error.strerror}") from error
    except (SafetensorError, ValueError) as error:
        raise BadCheckpoint(f"{path}: {error}") from error
    if pretrained.digest_of(backbone, network, networks.input_size(network)) != digest:
        raise BadCheckpoint(f"{path}: the backbone does not match its digest")
    return backbone


def random(network: str, compute: Compute) -> Pretrained:
    """Random weights to freeze, where no pre-trained ones can be had."""
    with training.seeded(SEED, compute.device):
        backbone = networks.backbone(network)
    digest = pretrained.digest_of(backbone, network, networks.input_size(network))
    return Pretrained(backbone.state_dict(), "random", digest)


def _path(folder: Path, digest: str) -> Path:
    return folder / f"{digest}.safetensors"
