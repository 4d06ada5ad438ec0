"""Chooses the device that models train and score on."""

from __future__ import annotations

from collections.abc import Callable

import torch


class NoSuchDevice(ValueError):
    """A device was asked for by name that this machine does not have."""


def choose_device(
    wanted: str | torch.device | None = None,
    *,
    cuda_available: Callable[[], bool] = torch.cuda.is_available,
) -> torch.device:
    """The device asked for; with None or "auto", CUDA where there is a GPU and else the CPU."""
    if wanted is None or wanted == "auto":
        return torch.device("cuda" if cuda_available() else "cpu")
    try:
        device = torch.device(wanted)
    except RuntimeError as error:
        raise NoSuchDevice(f"unknown device {wanted!r}: use 'auto', 'cpu' or 'cuda'") from error
    if device.type == "cuda" and not cuda_available():
        raise NoSuchDevice(f"device {str(device)!r} was asked for, but no CUDA GPU is usable here: use 'auto' or 'cpu'")
    return device
