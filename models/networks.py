"""The networks that can be trained, by name. Naming one needs no torch; building one does."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn

    from models.network import Network
    from models.pretrained import Pretrained


class UnknownNetwork(ValueError):
    """No network has this name; the message names those that exist."""


@dataclass(frozen=True)
class Blueprint:
    """The side of the square images a network reads, and how many features its backbone makes of one."""

    input_size: int
    features: int


_CURATED = {
    "small-cnn": Blueprint(28, 3136),
    "efficientnet-lite0": Blueprint(224, 1280),
    "vgg16": Blueprint(224, 25088),
    "resnet18": Blueprint(224, 512),
    "resnet50": Blueprint(224, 2048),
    "resnet101": Blueprint(224, 2048),
    "mobilenet_v3_small": Blueprint(224, 1024),
    "mobilenet_v3_large": Blueprint(224, 1280),
    "efficientnet_b0": Blueprint(224, 1280),
    "efficientnet_v2_s": Blueprint(384, 1280),
    "convnext_tiny": Blueprint(224, 768),
    "vit_b_16": Blueprint(224, 768),
}


def names() -> list[str]:
    """Those worth knowing by heart; any other classification model of torchvision will do as well."""
    return list(_CURATED)


def check(name: str) -> None:
    """Raises UnknownNetwork. Imports torchvision only for a name that is not one of `names()`."""
    if name in _CURATED:
        return
    from models.backbones import torchvision_models

    others = torchvision_models.names()
    if name in others:
        return
    near = difflib.get_close_matches(name, {**_CURATED, **dict.fromkeys(others)}, n=1)
    raise UnknownNetwork(
        f"unknown network {name!r}{f' (did you mean {near[0]!r}?)' if near else ''}: known are {', '.join(names())}, "
        "and any other classification model of torchvision will do"
    )


def input_size(name: str) -> int:
    """Side of the square images it reads."""
    check(name)
    if name in _CURATED:
        return _CURATED[name].input_size
    from models.backbones import torchvision_models

    return torchvision_models.presets(name)[0].input_size


def build(name: str, *, classes: int, pretrained: Pretrained | None = None) -> Network:
    """A new network with random weights, drawn from torch's current random state; its backbone with the pre-trained
    ones where given."""
    from models.network import Network

    _at_least_two(classes)
    return Network(backbone(name, pretrained=pretrained), head(name, classes=classes), features=_features(name))


def backbone(name: str, *, pretrained: Pretrained | None = None) -> nn.Module:
    """A new backbone alone, to make features that are kept."""
    check(name)
    if pretrained is None:
        return _random_backbone(name)
    import torch

    with torch.device("meta"):  # no memory and no random numbers for weights that are replaced at once
        filled = _random_backbone(name)
    pretrained.fill(filled)
    return filled


def head(name: str, *, classes: int) -> nn.Module:
    """A new head alone, for features that a backbone of this name made before."""
    from models.heads import head_for

    _at_least_two(classes)
    return head_for(name, features=_features(name), classes=classes)


def _random_backbone(name: str) -> nn.Module:
    if name == "small-cnn":
        from models import small_cnn

        return small_cnn.backbone()
    if name == "efficientnet-lite0":
        from models import efficientnet_lite

        return efficientnet_lite.backbone()
    from models.backbones import torchvision_models

    return torchvision_models.backbone(name)


def _features(name: str) -> int:
    check(name)
    if name in _CURATED:
        return _CURATED[name].features
    import torch

    from models.backbones import torchvision_models

    with torch.device("meta"):  # it is only measured
        return torchvision_models.backbone(name).features


def _at_least_two(classes: int) -> None:
    if classes < 2:
        raise ValueError(f"a classifier needs at least 2 classes, not {classes}")
