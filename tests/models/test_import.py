"""What is slow to import is imported only where it is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

NAMES = """
import sys
from models import networks
for name in networks.names():
    networks.check(name), networks.input_size(name)
assert not {"torch", "torchvision", "numpy", "PIL"} & set(sys.modules), "a command must not wait for torch"
"""

TRAINING = """
import sys
import numpy as np
from models.device import choose
from models.learner import Examples
from models.network_learner import FullLearner
from models.recipe import DEFAULT
images = np.zeros((4, 3, 28, 28), dtype=np.uint8)
examples = Examples(images, np.array([0, 1, 0, 1]), np.ones(4, dtype=np.float32), 2)
FullLearner("small-cnn", DEFAULT, choose("cpu")).fit(examples, seed=0)
assert not {"torchvision", "torch._dynamo"} & set(sys.modules), "training must not pay for what it does not use"
"""

PACKAGED = """
import sys, torch
from pathlib import Path
from models import networks, pretrained
torch.set_num_threads(1)
for name in ("small-cnn", "efficientnet-lite0"):
    network = networks.build(name, classes=2, pretrained=pretrained.find(name, Path("weights")))
    side = networks.input_size(name)
    network(torch.zeros(1, 3, side, side, dtype=torch.uint8)).sum().backward()
assert "torchvision" not in sys.modules, "they have nothing to do with torchvision"
assert "torch._dynamo" not in sys.modules, "training must not pay for torch's compiler"
"""

TORCHVISION = """
import sys, torch
from models import networks
torch.set_num_threads(1)
for name in networks.names():
    with torch.device("meta"):
        restored = networks.build(name, classes=2)
network = networks.build("mobilenet_v3_small", classes=2)
network(torch.zeros(2, 3, 224, 224, dtype=torch.uint8)).sum().backward()
assert "torch._dynamo" not in sys.modules, "training must not pay for torch's compiler"
"""

COMPILER = """
import sys
from models.backbones.light_torchvision import import_models
import_models()
asked_by_torchvision = sys.modules["torchvision.ops.roi_align"].is_compile_supported("cpu")
import torch._dynamo.utils
assert asked_by_torchvision == torch._dynamo.utils.is_compile_supported("cpu")
"""


def run(program: str) -> None:
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_naming_a_network_needs_no_torch() -> None:
    run(NAMES)


@pytest.mark.slow
def test_training_imports_no_more_than_it_needs() -> None:
    run(TRAINING)


@pytest.mark.slow
def test_networks_that_come_in_packages_need_no_torchvision() -> None:
    run(PACKAGED)


@pytest.mark.slow
def test_torchvisions_models_need_no_compiler() -> None:
    run(TORCHVISION)


@pytest.mark.slow
def test_whoever_wants_the_compiler_still_has_it() -> None:
    run(COMPILER)
