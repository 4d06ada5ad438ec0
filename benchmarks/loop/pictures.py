"""The digits that are labelled: the demo's, or a part of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from backend.demo.digits import Digit, Digits
from backend.demo.pictures import HELD_OUT_SHARE, Pictures, prepare


class SomeDigits(Digits):
    """As many as give a pool of this size, of every class alike."""

    def __init__(self, pool: int) -> None:
        self._count = round(pool / (1 - HELD_OUT_SHARE))

    def images(self) -> Sequence[Digit]:
        every = super().images()  # in the order of their classes
        return every[:: max(1, len(every) // self._count)][: self._count]


def draw_digits(folder: Path, pool: int) -> Pictures:
    return prepare(SomeDigits(pool), folder)
