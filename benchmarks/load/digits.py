"""Handwritten digits as files: what is trained on while webhooks arrive."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from backend.demo.digits import Digits


def write(folder: Path, count: int) -> list[str]:
    """Writes digits in a random order that is always the same; returns the files' names, which tell the digit."""
    folder.mkdir(parents=True)
    digits = Digits().images()
    names = []
    for number, which in enumerate(np.random.default_rng(7).permutation(len(digits))[:count]):
        names.append(f"{number:04}-{digits[which].truth}.png")
        Image.fromarray(255 - digits[which].ink).save(folder / names[-1], compress_level=1)
    return names


def read(folder: Path, count: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The first of them as a network takes them, (n, 3, 28, 28), and their digits."""
    paths = sorted(folder.glob("*.png"))[:count]
    images = np.stack([np.asarray(Image.open(path).convert("RGB")).transpose(2, 0, 1) for path in paths])
    return images, np.array([int(path.stem[-1]) for path in paths])
