"""Made-up images as files, each different from all others."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def encoded(pixels: NDArray[np.uint8]) -> bytes:
    """A PNG of (height, width) or (height, width, 3)."""
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG", compress_level=1)
    return out.getvalue()


def noise(number: int, side: int) -> bytes:
    """The picture of this number, always the same; few pixels suffice, since whoever reads it makes it its own size."""
    return encoded(np.random.default_rng(number).integers(0, 256, (side, side, 3), np.uint8))
