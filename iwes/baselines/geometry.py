"""Squared distances between tasks, for plain features and for gradient embeddings kept as two small factors."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
ROUNDING = 1e-12  # a squared distance this small, relative to the norms it is the difference of, is zero


class Geometry(Protocol):
    """Points that know their squared distances."""

    norm: Floats  # squared distance from the origin, shape (n,)

    def square(self, rows: Indices | slice, columns: Indices) -> Floats:
        """The squared distances between points `rows` and points `columns`, shape (rows, columns)."""


class Plain:
    """Points given by their features (n, d)."""

    def __init__(self, features: Floats) -> None:
        self.features = features
        self.norm: Floats = np.einsum("ij,ij->i", features, features)

    def square(self, rows: Indices | slice, columns: Indices) -> Floats:
        return _combine(self.features[rows] @ self.features[columns].T, self.norm[rows], self.norm[columns])


class Factored:
    """Points that are outer products a ⊗ h of factors (n, classes) and (n, d), never multiplied out.

    ⟨a ⊗ h, b ⊗ g⟩ = ⟨a, b⟩⟨h, g⟩, so a distance costs classes + d instead of classes × d.
    """

    def __init__(self, first: Floats, second: Floats) -> None:
        self.first = first
        self.second = second
        self.norm: Floats = np.einsum("ij,ij->i", first, first) * np.einsum("ij,ij->i", second, second)

    def square(self, rows: Indices | slice, columns: Indices) -> Floats:
        inner = self.first[rows] @ self.first[columns].T
        inner *= self.second[rows] @ self.second[columns].T
        return _combine(inner, self.norm[rows], self.norm[columns])


def _combine(inner: Floats, row_norm: Floats, column_norm: Floats) -> Floats:
    """|x|² + |y|² − 2⟨x, y⟩, in place of `inner`; exactly 0 for a point and its double."""
    inner *= -2.0
    inner += row_norm[:, None]
    inner += column_norm[None, :]
    inner[inner < ROUNDING * row_norm.max(initial=0.0)] = 0.0
    return inner
