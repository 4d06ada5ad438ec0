"""The sizes of what is measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    full: bool = False  # slow peers make all k picks, not only a few
    k: int = 1000
    few: int = 30  # picks of a slow peer from which the time of k is extrapolated
    classes: int = 10
    features: int = 128
    large: int = 1_000_000  # rows that only probabilities are given of
    small: int = 60_000  # rows that features are given of as well
    labelled: int = 50  # rows that k-center has already
    pairs: int = 1500  # of later picks, counted to compare how BADGE draws

    @property
    def picks(self) -> int:
        """That a slow peer makes."""
        return self.k if self.full else self.few
