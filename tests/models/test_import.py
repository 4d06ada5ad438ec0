"""What is slow to import is imported only where it is needed."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys, models
assert not {"torch", "numpy", "PIL"} & set(sys.modules), "the package must be light"
import numpy as np
from models.training import train
images = np.zeros((4, 3, 28, 28), dtype=np.uint8)
train(images, np.array([0, 1, 0, 1]), np.ones(4), network="small-cnn", classes=2, seed=0, device="cpu")
assert "torch._dynamo" not in sys.modules, "training must not pay for torch's compiler"
"""


def test_neither_the_package_nor_training_imports_more_than_it_needs() -> None:
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
