"""Small images in the size that a pre-trained network reads, made when asked for: all at once would not fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from models.learner import Rows


@dataclass(frozen=True)
class Enlarged:
    """Rows of images (n, 3, size, size), uint8."""

    rows: Rows
    size: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.rows), 3, self.size, self.size)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, places: NDArray[np.int64] | slice) -> NDArray[Any]:
        some = torch.from_numpy(np.array(self.rows[places])).float()
        if not len(some):
            return np.zeros((0, *self.shape[1:]), np.uint8)
        larger = torch.nn.functional.interpolate(some, (self.size, self.size), mode="bilinear", antialias=True)
        return larger.round().clamp(0, 255).to(torch.uint8).numpy()
