"""Small random changes to training images that leave what they show the same."""

from __future__ import annotations

import torch
from torch import Tensor

PART = 14  # a 28-pixel digit is moved by up to 2 pixels, a 224-pixel photo by up to 16


def shifted(images: Tensor) -> Tensor:
    """Each image (n, 3, s, s) moved by up to a fourteenth of its side each way; the border repeats where it moved in.

    The moves are drawn from the CPU's random state, so they are the same on every device.
    """
    count, channels, height, width = images.shape
    device = images.device
    rows = _moved(height, count).to(device)
    columns = _moved(width, count).to(device)
    return images[
        torch.arange(count, device=device)[:, None, None, None],
        torch.arange(channels, device=device)[None, :, None, None],
        rows[:, None, :, None],
        columns[:, None, None, :],
    ]


def _moved(side: int, count: int) -> Tensor:
    """For each of `count` images, the places (count, side) that its pixels along one side come from."""
    most = side // PART
    moves = torch.randint(-most, most + 1, (count, 1))
    return (torch.arange(side) + moves).clamp(0, side - 1)
