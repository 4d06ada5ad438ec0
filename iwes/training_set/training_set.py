"""A weighted training set in memory: one array per column, and what training needs of them by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from iwes.training_set.torch_dataset import WeightedImages


@dataclass(frozen=True, eq=False)
class TrainingSet:
    classes: tuple[str, ...]
    """All that the project has, in the order of its labelling config, whether or not there is a row of each."""
    columns: Mapping[str, NDArray[Any]]
    """By name, shape (n,) each, so that `pandas.DataFrame(columns)` is a table. Numbers that are missing are NaN."""
    images: NDArray[np.object_]
    """Of each row: a `Path` in an image folder, `bytes` in a data set of Hugging Face, else its address as a `str`."""
    manifest: Mapping[str, Any] | None
    """How each weight came about, where the manifest lies beside the export."""

    def __len__(self) -> int:
        return len(self.images)

    @property
    def labels(self) -> NDArray[np.int64]:
        """Of each row the place of its class in `classes`; shape (n,)."""
        places = {name: place for place, name in enumerate(self.classes)}
        return np.array([places[name] for name in self.columns["class"]], dtype=np.int64)

    @property
    def weights(self) -> NDArray[np.float64]:
        """As exported, 0 or more; shape (n,)."""
        return self.columns["weight"]

    def torch(
        self, transform: Callable[[Any], Any] | None = None, *, read: Callable[[str], bytes] | None = None
    ) -> WeightedImages:
        """A `torch.utils.data.Dataset` of (image, label, weight); torch and Pillow are imported only now. `transform`
        takes the picture as a PIL image in RGB; without one it becomes a float tensor (3, height, width) in [0, 1].
        `read` gets the bytes behind an address, for exports that hold no images."""
        from iwes.training_set.torch_dataset import WeightedImages

        return WeightedImages(self, transform, read)
