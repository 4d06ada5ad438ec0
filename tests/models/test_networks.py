"""Networks are built by name."""

from __future__ import annotations

import pytest
import torch

from models import networks


@pytest.mark.parametrize("name", networks.names())
@pytest.mark.parametrize("classes", [2, 7])
def test_every_network_maps_its_own_size_of_images_to_one_logit_per_class(name: str, classes: int) -> None:
    side = networks.input_size(name)
    images = torch.randint(0, 256, (5, 3, side, side), dtype=torch.uint8)
    logits = networks.build(name, classes=classes)(images)
    assert logits.shape == (5, classes)
    assert torch.isfinite(logits).all()


@pytest.mark.parametrize("name", networks.names())
def test_what_a_network_says_of_an_image_does_not_depend_on_its_neighbours(name: str) -> None:
    side = networks.input_size(name)
    images = torch.randint(0, 256, (5, 3, side, side), dtype=torch.uint8)
    network = networks.build(name, classes=3).eval()
    assert torch.allclose(network(images)[2:3], network(images[2:3]), atol=1e-5)


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(networks.UnknownNetwork, match=r"unknown network 'resnet9000': known are .*small-cnn"):
        networks.build("resnet9000", classes=2)


def test_one_class_is_too_few() -> None:
    with pytest.raises(ValueError, match="at least 2 classes, not 1"):
        networks.build("small-cnn", classes=1)
