"""What a model says of tasks before anybody labels them, kept with their draws: what is said of them is held against it
later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MOST_CLASSES = 100
"""With more than these, only the likeliest class of each task is kept: probabilities would outgrow everything else."""


@dataclass(frozen=True)
class Foreseen:
    predicted: Mapping[int, str] = field(default_factory=dict)
    """The likeliest class of each task."""
    beliefs: Mapping[int, bytes] = field(default_factory=dict)
    """The probability of each class, as `store.tables.Draw` keeps it."""
    expected: dict[str, Any] | None = None
    """How common each class is expected to be, and how sure the model is, as `store.tables.Round` keeps it."""
