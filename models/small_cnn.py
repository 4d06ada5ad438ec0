"""A small convolutional network for 28 × 28 images that learns from few labels in seconds on a CPU."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def backbone() -> nn.Sequential:
    """Features of shape (n, 3136) from uint8 images of shape (n, 3, 28, 28).

    Normalised by groups, not by batches, so that each example's output, and with it its weighted loss, depends
    on that example alone.
    """
    return nn.Sequential(
        _Pixels(),
        _block(3, 32, kernel=5, stride=2),
        _block(32, 32),
        nn.MaxPool2d(2),
        _block(32, 64),
        nn.Flatten(),
    )


class _Pixels(nn.Module):
    """From 0 … 255 to −1 … 1."""

    def forward(self, images: Tensor) -> Tensor:
        return images.to(torch.float32) / 127.5 - 1


def _block(channels_in: int, channels_out: int, *, kernel: int = 3, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels_in, channels_out, kernel, stride, padding=kernel // 2, bias=False),
        nn.GroupNorm(8, channels_out),
        nn.ReLU(),
    )
