"""How a project wants its model trained, as its admin said it. Needs no torch, so every command can read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from models import recipe as recipes
from models.recipe import Recipe

WAYS = ("auto", "full", "head")
RECIPES = ("auto", "paper")
SCHEDULES = ("constant", "cosine")
CHOOSE = "choose"


class PlanError(ValueError):
    """A plan that cannot be followed; the message names the option and what it may be."""


@dataclass(frozen=True)
class Plan:
    """`head` trains on descriptions by a frozen backbone, `full` trains every weight, and `auto` is `head` where the
    backbone is pre-trained and `full` where it is not, which the first training decides for all later ones."""

    way: str = "auto"
    recipe: str = "auto"
    learning_rate: float | str | None = None
    """None: the recipe's; "choose": the one that does best on the seed set, as in the paper."""
    schedule: str | None = None
    balance: bool = False
    """Whether rare classes count as much as frequent ones."""
    warm_start: bool = False
    """Whether a round goes on from the last model instead of beginning anew."""
    calibrate: bool = False
    """Whether probabilities are scaled to be right on labels the model has not seen."""
    pretrained: bool | None = None
    """Whether the backbone started from pre-trained weights; None until the first training has found out."""

    def __post_init__(self) -> None:
        rules = {
            f"--train must be one of {', '.join(WAYS)}": self.way in WAYS,
            f"--recipe must be one of {', '.join(RECIPES)}": self.recipe in RECIPES,
            f"--schedule must be one of {', '.join(SCHEDULES)}": self.schedule in (None, *SCHEDULES),
            f"--learning-rate must be a number between 0 and 1, or {CHOOSE!r}": _is_rate(self.learning_rate),
        }
        for rule, kept in rules.items():
            if not kept:
                raise PlanError(rule)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Plan:
        """What is missing has its default, so that plans stored by an older version can be read."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in values.items() if name in known})

    @classmethod
    def said(cls, options: Mapping[str, Any]) -> Plan:
        """As the options of a command say it, where a learning rate is still a text."""
        values = dict(options)
        rate = values.get("learning_rate")
        if isinstance(rate, str) and rate != CHOOSE:
            try:
                values["learning_rate"] = float(rate)
            except ValueError:
                raise PlanError(f"--learning-rate is {rate!r}; give a number, or {CHOOSE!r}") from None
        return cls(**values)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def way_for(self, *, pretrained: bool) -> str:
        if self.way == "auto":
            return "head" if pretrained else "full"
        return self.way

    def recipe_for(self, network: str, *, way: str, pretrained: bool) -> Recipe:
        """The recipe that fits what is trained, with what the admin changed about it."""
        if self.recipe == "paper":
            base = recipes.PAPER
        elif way == "head":
            base = recipes.HEAD
        else:
            base = recipes.FINE_TUNE if pretrained else recipes.DEFAULT
        changes: dict[str, Any] = {"balance": self.balance}
        if way == "head":
            changes["augment"] = False
            if network == "vgg16":  # its head has 120 million weights
                changes["threads"] = None
        elif network != "small-cnn":
            changes["threads"] = None
        if self.schedule is not None:
            changes["schedule"] = self.schedule
        if self.learning_rate is not None:
            changes["learning_rate"] = None if self.learning_rate == CHOOSE else self.learning_rate
        return replace(base, **changes)


def _is_rate(value: float | str | None) -> bool:
    return value is None or value == CHOOSE or (isinstance(value, int | float) and 0 < value <= 1)
