"""What a baseline chooses from: the unlabelled tasks, as the model and its features see them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from iwes.draw import check_pool_size
from iwes.errors import BadArgument

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Candidates:
    """The pool of one round. A baseline that needs a part which is not there says so.

    `probabilities` (n, classes): what the model believes. `features` (n, d): its penultimate layer. `labelled`
    (m, d): the features of tasks labelled before, which Coreset keeps its distance from.
    """

    probabilities: ArrayLike | None = None
    features: ArrayLike | None = None
    labelled: ArrayLike | None = None

    @property
    def size(self) -> int:
        """How many tasks there are to choose from."""
        sizes = {len(np.asarray(part)) for part in (self.probabilities, self.features) if part is not None}
        if len(sizes) != 1:
            raise BadArgument(
                f"probabilities and features have {sorted(sizes)} rows: give one or both, of the same tasks"
            )
        return sizes.pop()

    def how_many(self, k: int) -> int:
        """k, or the whole pool where that is smaller; raises `EmptyPool` where there is none."""
        if k < 1:
            raise BadArgument(f"k is {k}: choose at least 1 task")
        check_pool_size(self.size)
        return min(k, self.size)

    def beliefs(self) -> ArrayLike:
        """The probabilities, which the functions of `iwes.probability` check."""
        if self.probabilities is None:
            raise BadArgument("probabilities is missing: this strategy needs what the model believes, (n, classes)")
        return self.probabilities

    def vectors(self) -> Floats:
        """The features in double precision, all finite."""
        return _matrix(self.features, "features")

    def labelled_vectors(self) -> Floats:
        """The features of the labelled tasks; none of them where `labelled` is missing."""
        features = self.vectors()
        if self.labelled is None:
            return features[:0]
        labelled = _matrix(self.labelled, "labelled")
        if labelled.shape[1] != features.shape[1]:
            raise BadArgument(
                f"labelled has {labelled.shape[1]} columns but features {features.shape[1]}: same layer, please"
            )
        return labelled


def _matrix(values: ArrayLike | None, name: str) -> Floats:
    if values is None:
        raise BadArgument(f"{name} is missing: this strategy needs the model's features, (n, d)")
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2:
        raise BadArgument(f"{name} has shape {matrix.shape}: expected (tasks, features)")
    if not np.isfinite(matrix.sum()):  # one number decides the usual case
        bad = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
        if bad.size:
            raise BadArgument(f"{name}: row {bad[0]} is not finite: leave that task out")
    return matrix
