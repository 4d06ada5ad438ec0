"""What is asked of the peers, so that others can stand in for them."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]


class Entropy(Protocol):
    def __call__(self, probabilities: Array, k: int) -> Array: ...


class Badge(Protocol):
    def __call__(self, probabilities: Array, features: Array, k: int, seed: int = 0) -> Array: ...


class KCenter(Protocol):
    def __call__(self, features: Array, labelled: Array, k: int) -> Array: ...


class Peers(Protocol):
    """`peers` is one, as a module."""

    @property
    def modal_entropy(self) -> Entropy: ...
    @property
    def baal_entropy(self) -> Entropy: ...
    @property
    def small_text_entropy(self) -> Entropy: ...
    @property
    def active_lab(self) -> Entropy: ...
    @property
    def activeml_badge(self) -> Badge: ...
    @property
    def reference_badge(self) -> Badge: ...
    @property
    def activeml_kcenter(self) -> KCenter: ...
