"""Networks are built by name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from models import networks
from models.backbones import torchvision_models
from models.heads import LinearHead
from models.network import Network

pytestmark = pytest.mark.slow

SMALL = ["small-cnn", "efficientnet-lite0", "resnet18", "mobilenet_v3_small"]
ALL = [pytest.param(name, marks=[] if name in SMALL else [pytest.mark.slow]) for name in networks.names()]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """On a busy machine, two threads wait for each other more than they work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def random_images(count: int, name: str) -> Tensor:
    side = networks.input_size(name)
    return torch.randint(0, 256, (count, 3, side, side), dtype=torch.uint8)


SMALL = ("small-cnn", "resnet18", "efficientnet-lite0", "mobilenet_v3_small")
"""Those that are made and tried in no time."""


def without_memory(name: str, *, classes: int = 2) -> Network:
    """For shapes alone, which cost nothing."""
    with torch.device("meta"):
        return networks.build(name, classes=classes).to("meta")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in SMALL else pytest.mark.slow) for name in networks.names()]
)
def test_every_network_maps_its_own_size_of_images_to_features_and_one_logit_per_class(name: str) -> None:
    network = without_memory(name, classes=7)
    images = random_images(2, name).to("meta")
    features = network.backbone(images)
    assert features.shape == (2, network.features)
    assert features.dtype == torch.float32
    assert network(images).shape == network.head(features).shape == (2, 7)


@pytest.mark.parametrize("name", ALL)
def test_what_a_network_says_of_an_image_does_not_depend_on_its_neighbours(name: str) -> None:
    images = random_images(3, name)
    network = networks.build(name, classes=3).eval()
    with torch.inference_mode():
        together, alone = network.backbone(images)[2], network.backbone(images[2:])[0]
        logits = network(images)
    assert torch.allclose(together, alone, rtol=1e-3, atol=1e-4 * together.abs().max().item())
    assert torch.isfinite(logits).all()


@pytest.mark.parametrize("name", networks.names())
def test_the_table_agrees_with_torchvision_and_with_what_is_built(name: str) -> None:
    assert without_memory(name).features == networks._features(name)
    if name in torchvision_models.names():
        assert networks.input_size(name) == torchvision_models.presets(name)[0].input_size


@pytest.mark.parametrize("name", networks.names())
def test_a_head_comes_alone_too(name: str) -> None:
    with torch.device("meta"):
        alone = networks.head(name, classes=4)
    own = without_memory(name, classes=4).head
    assert {key: value.shape for key, value in alone.state_dict().items()} == {
        key: value.shape for key, value in own.state_dict().items()
    }


def test_any_other_classification_model_of_torchvision_will_do() -> None:
    network = networks.build("shufflenet_v2_x0_5", classes=4)
    assert network(random_images(2, "shufflenet_v2_x0_5")).shape == (2, 4)
    head = networks.head("shufflenet_v2_x0_5", classes=4)
    assert isinstance(head, LinearHead)
    assert head.linear.in_features == network.features


def test_a_model_that_does_not_classify_images_will_not() -> None:
    with pytest.raises(networks.UnknownNetwork):
        networks.check("fasterrcnn_resnet50_fpn")


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(
        networks.UnknownNetwork, match=r"unknown network 'of-my-own': known are small-cnn, .*vit_b_16"
    ) as it:
        networks.build("of-my-own", classes=2)
    assert str(it.value).endswith("any other classification model of torchvision will do")


@pytest.mark.parametrize(
    ("wrong", "right"), [("smallcnn", "small-cnn"), ("resnet-18", "resnet18"), ("ConvNext_base", "convnext_base")]
)
def test_a_slip_of_the_pen_is_answered_with_the_right_name(wrong: str, right: str) -> None:
    with pytest.raises(networks.UnknownNetwork, match=f"did you mean '{right}'"):
        networks.check(wrong)


@pytest.mark.parametrize("make", [networks.build, networks.head])
def test_one_class_is_too_few(make) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="at least 2 classes, not 1"):
        make("small-cnn", classes=1)


def test_the_same_random_state_gives_the_same_network() -> None:
    def built(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return nn.utils.parameters_to_vector(networks.build("mobilenet_v3_small", classes=2).parameters())

    assert torch.equal(built(1), built(1))
    assert not torch.equal(built(1), built(2))


def test_a_network_made_without_memory_can_be_filled_with_the_weights_of_another() -> None:
    for name in ("mobilenet_v3_small", "mnasnet0_5", "regnet_x_400mf"):
        trained = networks.build(name, classes=3).eval()
        with torch.device("meta"):
            restored = networks.build(name, classes=3).eval()
        restored.load_state_dict(dict(trained.state_dict()), assign=True)  # a plain dict, as safetensors gives it
        images = random_images(1, name)
        assert torch.equal(restored(images), trained(images)), name


def test_the_linear_head_standardises_features_like_those_it_was_shown() -> None:
    head = LinearHead(4, 2)
    features = torch.randn(500, 4) * torch.tensor([1.0, 3.0, 2.0, 0.0]) + torch.tensor([0.0, 5.0, -5.0, 7.0])
    assert torch.equal(head(features), head.linear(features))
    head.standardise(features)
    seen = (features - head.mean) / head.scale
    assert torch.allclose(seen.mean(dim=0), torch.zeros(4), atol=1e-5)
    assert torch.allclose(seen[:, :3].std(dim=0), torch.ones(3), atol=1e-2)
    assert torch.allclose(head(features), head.linear(seen))


def test_a_feature_that_never_varied_stays_small_in_an_image_that_has_it() -> None:
    head = LinearHead(3, 2)
    head.standardise(torch.tensor([[1.0, 2.0, 0.0], [3.0, 6.0, 0.0]]))
    assert head.scale[2] == pytest.approx(0.1)
    head.standardise(torch.ones(1, 3))
    assert head.scale.tolist() == [1, 1, 1]


def test_what_the_linear_head_was_shown_is_kept_with_its_weights() -> None:
    head = LinearHead(3, 2)
    head.standardise(torch.randn(10, 3))
    again = LinearHead(3, 2)
    again.load_state_dict(head.state_dict())
    assert torch.equal(again.mean, head.mean)
    assert torch.equal(again.scale, head.scale)


@pytest.mark.parametrize(
    ("name", "widths"),
    [pytest.param("vgg16", [25088, 4096, 4096, 5], marks=pytest.mark.slow), ("resnet101", [2048, 128, 5])],
    ids=["vgg16", "resnet101"],
)
def test_the_heads_of_the_paper_are_layered_and_xavier_initialised(name: str, widths: list[int]) -> None:
    layers = [layer for layer in networks.head(name, classes=5).modules() if isinstance(layer, nn.Linear)]
    assert [layer.in_features for layer in layers] + [5] == widths
    for layer in layers:
        bound = (6 / (layer.in_features + layer.out_features)) ** 0.5
        assert 0.95 * bound < layer.weight.abs().max() <= bound
        assert layer.weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.05)
        assert not layer.bias.any()
