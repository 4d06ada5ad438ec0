"""A training set for torch; only imported by whoever asks for one."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset

from iwes.errors import BadArgument

if TYPE_CHECKING:
    from iwes.training_set.training_set import TrainingSet


class WeightedImages(Dataset[tuple[Any, int, torch.Tensor]]):
    """(image, label, weight) by place, the weight as a float32 scalar."""

    def __init__(
        self, loaded: TrainingSet, transform: Callable[[Any], Any] | None, read: Callable[[str], bytes] | None
    ) -> None:
        if read is None and any(isinstance(image, str) for image in loaded.images[:1]):
            raise BadArgument(
                "this export holds addresses and no images: export it with --format imagefolder or huggingface, "
                "or give read=, a function that gets the bytes behind an address"
            )
        self._images, self._transform, self._read = loaded.images, transform or as_tensor, read
        self._labels = loaded.labels.tolist()
        self._weights = torch.tensor(loaded.weights, dtype=torch.float32)

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, place: int) -> tuple[Any, int, torch.Tensor]:
        with Image.open(io.BytesIO(self._content(self._images[place]))) as picture:
            return self._transform(picture.convert("RGB")), self._labels[place], self._weights[place]

    def _content(self, image: bytes | Path | str) -> bytes:
        if isinstance(image, str) and self._read is not None:
            return self._read(image)
        return image.read_bytes() if isinstance(image, Path) else bytes(image)  # type: ignore[arg-type]


def as_tensor(picture: Image.Image) -> torch.Tensor:
    return torch.from_numpy(np.array(picture)).permute(2, 0, 1).float() / 255
