"""How a model is trained: a handful of settings with a name, kept as JSON beside what came of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self

RATES = (0.001, 0.002, 0.005, 0.01, 0.1)  # the learning rates that the paper chooses from


class RecipeError(ValueError):
    """A setting cannot be used; the message names it and what was expected."""


@dataclass(frozen=True)
class Recipe:
    """Settings of a training run. Those not given are what the small network is trained with."""

    optimiser: Literal["adamw", "sgd"] = "adamw"
    learning_rate: float | None = 1e-3  # None: chosen on the seed set, see `models.learning_rate`
    momentum: float = 0.9  # of SGD
    weight_decay: float = 1e-2  # decoupled from the gradient in AdamW, part of it in SGD
    batch: int = 32
    schedule: Literal["constant", "cosine"] = "constant"
    epochs_at_most: int = 100
    # A run has converged once an epoch's loss, met under augmentation and dropout, is below `low_enough`: at 0.1 small
    # networks are still well calibrated, and the probabilities that the next draw is made of do not yet run to 0 and 1.
    # At a constant rate it has also converged after `patience` epochs without a new lowest loss. A cosine makes the
    # loss fall to its very end, so there only a low loss ends the run early.
    low_enough: float = 0.1
    patience: int = 10
    augment: bool = True  # shifts, of images only
    balance: bool = False  # every class gets the same share of the weight
    freeze_norms: bool = False  # batch norms keep the statistics they came with, so no example's loss hangs on others
    threads: int | None = None  # CPU threads while training; None: as many as torch takes by itself

    def __post_init__(self) -> None:
        for name, expected, fits in (
            ("optimiser", "'adamw' or 'sgd'", self.optimiser in ("adamw", "sgd")),
            (
                "learning_rate",
                "a number above 0, or null to choose it on the seed set",
                self.learning_rate is None or (_number(self.learning_rate) and self.learning_rate > 0),
            ),
            ("momentum", "a number from 0 to below 1", _number(self.momentum) and 0 <= self.momentum < 1),
            ("weight_decay", "a number of at least 0", _number(self.weight_decay) and self.weight_decay >= 0),
            ("batch", "a whole number above 0", _count(self.batch)),
            ("schedule", "'constant' or 'cosine'", self.schedule in ("constant", "cosine")),
            ("epochs_at_most", "a whole number above 0", _count(self.epochs_at_most)),
            ("low_enough", "a loss of at least 0", _number(self.low_enough) and self.low_enough >= 0),
            ("patience", "a whole number above 0", _count(self.patience)),
            ("augment", "true or false", isinstance(self.augment, bool)),
            ("balance", "true or false", isinstance(self.balance, bool)),
            ("freeze_norms", "true or false", isinstance(self.freeze_norms, bool)),
            ("threads", "a whole number above 0, or null", self.threads is None or _count(self.threads)),
        ):
            if not fits:
                raise RecipeError(f"{name} must be {expected}, not {getattr(self, name)!r}")

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The recipe with these settings, the others as in `DEFAULT`. Raises RecipeError."""
        if not isinstance(values, Mapping):
            raise RecipeError(f"a recipe must be settings by name, not {values!r}")
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known:
                raise RecipeError(f"unknown setting {name!r}: a recipe has {', '.join(known)}")
        return cls(**{**DEFAULT.as_dict(), **values})

    def rate_share(self, epoch: int, of: int) -> float:
        """The part of the learning rate that is used in an epoch, 1 … of."""
        if self.schedule == "constant":
            return 1.0
        return (1 + math.cos(math.pi * (epoch - 1) / of)) / 2


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


# Small networks have too little work to share out: a second thread saves a quarter of the time on an idle machine and
# multiplies it on a busy one, where each waits for the other. One thread also gives the same network on any machine.
DEFAULT = Recipe(threads=1)

PAPER = Recipe(optimiser="sgd", learning_rate=None, weight_decay=0.0, batch=100, augment=False)

# With it, linear heads on 1280 features of photos did as well as logistic regressions whose penalty was tuned for each
# number of labels, from 50 to 3,000; on 64 features of digits up to 1.5 points worse. Ending at a loss of 0.1 is what
# regularises them: it carries over from few labels and features to many, where a number of epochs does not.
HEAD = Recipe(epochs_at_most=200, augment=False, threads=1)

FINE_TUNE = Recipe(learning_rate=1e-4, schedule="cosine", epochs_at_most=20, freeze_norms=True)
