"""Makes learners: those of this package by network and plan, those of other packages by their entry point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import cast

from models import frozen, networks, plugins, pretrained
from models.allocator import keep_freed_memory
from models.card import Card
from models.device import Compute, choose
from models.learner import Learner
from models.network_learner import FullLearner, HeadLearner
from models.plan import Plan
from models.recipe import DEFAULT, Recipe

Factory = Callable[..., Learner]


class MissingWeights(RuntimeError):
    """Pre-trained weights that were there before are gone; worth another try later."""


class BadLearner(ValueError):
    """A learner of another package that cannot be made; the message says which and why."""


@dataclass(frozen=True)
class Workshop:
    """What learners are made with."""

    weights_folder: Path
    """Pre-trained weights: downloaded once, or put there by hand."""
    frozen_folder: Path
    """Backbones that heads were trained on."""
    device: str = "auto"

    @cached_property
    def compute(self) -> Compute:
        keep_freed_memory()
        return choose(self.device)

    def decided(self, network: str, plan: Plan) -> Plan:
        """The plan with everything settled that depends on what can be had: weights, and with them the way."""
        if plan.pretrained is not None or plugins.find(network) is not None:
            return plan
        found = pretrained.find(network, self.weights_folder) is not None
        return replace(plan, pretrained=found, way=plan.way_for(pretrained=found))

    def learner(
        self, network: str, plan: Plan, *, learning_rate: float | None = None, backbone: str | None = None
    ) -> Learner:
        """The learner a project asks for. Earlier rounds may have chosen a learning rate, where the plan says "choose",
        and frozen a backbone, by its digest. Raises MissingWeights where earlier rounds had some that are gone."""
        if plugins.find(network) is not None:
            return self.own(network)
        plan = self.decided(network, plan)
        recipe = plan.recipe_for(network, way=plan.way, pretrained=bool(plan.pretrained))
        if recipe.learning_rate is None and learning_rate is not None:
            recipe = replace(recipe, learning_rate=learning_rate)
        if plan.way == "head" and backbone is not None and frozen.is_kept(self.frozen_folder, backbone):
            return self._head(network, recipe, backbone)
        found = pretrained.find(network, self.weights_folder) if plan.pretrained else None
        if plan.pretrained and found is None:
            raise MissingWeights(f"the pre-trained weights of {network} that earlier rounds used cannot be had now")
        if plan.way == "full":
            return FullLearner(network, recipe, self.compute, found)
        fixed = found or frozen.random(network, self.compute)
        frozen.keep(self.frozen_folder, fixed)
        return self._head(network, recipe, fixed.digest)

    def learner_of(self, card: Card) -> Learner:
        """The learner that can restore what a checkpoint holds. Raises ValueError where there is none any more."""
        if card.way == "full":
            return FullLearner(card.network, DEFAULT, self.compute)
        if card.way == "head":
            return self._head(card.network, DEFAULT, str(card.frozen))
        learner = self.own(card.network)
        if learner.frozen != card.frozen:
            raise BadLearner(f"the model {card.network!r} describes images otherwise now than when this was trained")
        return learner

    def own(self, name: str) -> Learner:
        """The learner another package brings under this name."""
        point = plugins.find(name)
        if point is None:
            raise BadLearner(f"the model {name!r} comes from a package that is not installed here")
        try:
            factory = cast(Factory, point.load())
            return factory(weights_folder=self.weights_folder, device=self.device)
        except Exception as error:  # another package's code may raise anything
            raise BadLearner(f"the model {name!r} of {point.value} cannot be made: {error}") from error

    def _head(self, network: str, recipe: Recipe, digest: str) -> HeadLearner:
        return HeadLearner(
            lambda: frozen.load(self.frozen_folder, network, digest),
            lambda classes: networks.head(network, classes=classes),
            frozen=digest,
            input_size=networks.input_size(network),
            recipe=recipe,
            compute=self.compute,
        )


def way_of(network: str, learner: Learner) -> str:
    """What a card says of it: full, head, or own for a learner of another package."""
    if plugins.find(network) is not None:
        return "own"
    return "full" if learner.frozen is None else "head"
