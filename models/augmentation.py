"""Small random changes to training images that leave what they show the same."""

from __future__ import annotations

import torch
from torch import Tensor

PIXELS = 2


def shifted(images: Tensor) -> Tensor:
    """Each image (n, 3, s, s) moved by up to 2 pixels each way; the border repeats where it moved in."""
    count, channels, height, width = images.shape
    moves = torch.randint(-PIXELS, PIXELS + 1, (2, count, 1)).to(images.device)
    rows = (torch.arange(height, device=images.device) + moves[0]).clamp(0, height - 1)
    columns = (torch.arange(width, device=images.device) + moves[1]).clamp(0, width - 1)
    return images[
        torch.arange(count, device=images.device)[:, None, None, None],
        torch.arange(channels, device=images.device)[None, :, None, None],
        rows[:, None, :, None],
        columns[:, None, None, :],
    ]
