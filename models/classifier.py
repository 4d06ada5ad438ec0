"""A trained network that knows its classes and gives their probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from models import networks
from models.device import choose_device

BATCH = 256


class Classifier:
    """A network, the names of its classes in the order of its outputs, and its version.

    Nothing in it changes after construction, so any number of threads may ask it at once.
    """

    def __init__(
        self,
        network: nn.Module,
        *,
        network_name: str,
        classes: Sequence[str],
        version: str,
        device: str | torch.device | None = None,
    ) -> None:
        if len(classes) < 2 or len(set(classes)) < len(classes):
            raise ValueError(f"classes must be at least 2 different names, not {list(classes)}")
        self.device = choose_device(device)
        self.network = network.to(self.device).eval().requires_grad_(False)
        self.network_name = network_name
        self.classes = tuple(classes)
        self.version = version
        self.input_size = networks.input_size(network_name)

    def probabilities(self, images: NDArray[np.uint8]) -> NDArray[np.float64]:
        """P(class | image) of shape (n, classes), rows summing to 1, for uint8 images of shape (n, 3, s, s)."""
        expected = (3, self.input_size, self.input_size)
        if images.dtype != np.uint8 or images.shape[1:] != expected:
            raise ValueError(
                f"images must be uint8 of shape (n, {', '.join(map(str, expected))}), "
                f"not {images.dtype} of shape {images.shape}"
            )
        rows = np.empty((len(images), len(self.classes)), dtype=np.float64)
        with torch.inference_mode():
            for start in range(0, len(images), BATCH):
                batch = torch.from_numpy(np.ascontiguousarray(images[start : start + BATCH])).to(self.device)
                logits = self.network(batch).double()  # float64, so that rows sum to 1 within 1e-15
                rows[start : start + BATCH] = logits.softmax(dim=1).cpu().numpy()
        return rows
