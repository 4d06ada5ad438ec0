"""The classification models of torchvision, by the names torchvision gives them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from models.backbones.backbone import Backbone
from models.backbones.light_torchvision import import_models


@dataclass(frozen=True)
class Preset:
    """A published set of weights: the images it was trained to read, and its address."""

    input_size: int
    mean: tuple[float, ...]  # of the pixels, which count from 0 to 1
    std: tuple[float, ...]
    url: str

    @property
    def file(self) -> str:
        return self.url.rsplit("/", 1)[-1]

    def reads_like(self, other: Preset) -> bool:
        return (self.input_size, self.mean, self.std) == (other.input_size, other.mean, other.std)


def names() -> list[str]:
    models = import_models()
    return list(models.list_models(module=models))


def presets(name: str) -> list[Preset]:
    """The weights that fit the named model as it is built here: the best first."""
    weights = import_models().get_model_weights(name)
    default = _preset(weights.DEFAULT)
    others = [_preset(member) for member in weights]
    return [default, *(other for other in others if other != default and other.reads_like(default))]


def backbone(name: str) -> Backbone:
    """With random weights. VGG-16's is its convolutions; all others' is everything but the classification layer."""
    preset = presets(name)[0]
    return Backbone(
        _classifier(name, preset),
        mean=[255 * value for value in preset.mean],
        scale=[255 * value for value in preset.std],
        cut="classifier" if name == "vgg16" else None,
    )


def _preset(weights: Any) -> Preset:
    reads = weights.transforms()
    return Preset(reads.crop_size[0], tuple(reads.mean), tuple(reads.std), weights.url)


def _classifier(name: str, preset: Preset) -> nn.Module:
    models = import_models()
    make = partial(models.get_model, name, weights=None)
    if name in ("googlenet", "inception_v3"):
        # without the extra outputs of training; with the pixels as the published weights know them
        make = partial(make, aux_logits=False, init_weights=False, transform_input=True)
    elif name.startswith("vit_"):
        make = partial(make, image_size=preset.input_size)
    if torch.get_default_device().type != "meta":
        classifier = cast(nn.Module, make())
    elif name.startswith("regnet_"):
        # it works out its own shape with tensors, which it cannot where they have no memory
        with torch.device("cpu"), torch.random.fork_rng(devices=[]):
            classifier = make().to("meta")
    else:
        with _NumbersLeftOut():
            classifier = make()
    if isinstance(classifier, models.MNASNet):
        # it refuses weights that do not tell their version, and those out of safetensors tell none
        classifier._load_from_state_dict = partial(nn.Module._load_from_state_dict, classifier)
    return classifier


class _NumbersLeftOut(TorchFunctionMode):
    """For weights without memory: leaves out what would change their numbers alone, as they have none. To find that
    out by itself, torch would import its compiler."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in (Tensor.normal_, nn.init.normal_):
            return args[0] if args else kwargs["tensor"]
        if func is Tensor.mul and isinstance(args[1], float):
            return args[0]
        return func(*args, **kwargs)
