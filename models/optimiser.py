"""Optimisers without torch.optim, whose classes import torch's compiler on first use: seconds per process, for nothing.

They are for parameters that always have a gradient; parameters that need none are left as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import torch
from torch import Tensor, nn

from models.recipe import Recipe


class Optimiser(Protocol):
    """Changes parameters by their gradients, at a learning rate that may be set anew before any step."""

    learning_rate: float

    def zero_grad(self) -> None: ...

    def step(self) -> None: ...


def optimiser_for(recipe: Recipe, parameters: Iterable[nn.Parameter]) -> Optimiser:
    """The recipe's optimiser at its learning rate, which must have been chosen."""
    if recipe.learning_rate is None:
        raise ValueError("the learning rate must be chosen before training: see models.learning_rate.choose_rate")
    if recipe.optimiser == "sgd":
        return SGD(
            parameters,
            learning_rate=recipe.learning_rate,
            momentum=recipe.momentum,
            weight_decay=recipe.weight_decay,
        )
    return AdamW(parameters, learning_rate=recipe.learning_rate, weight_decay=recipe.weight_decay)


class AdamW:
    """Adam with decoupled weight decay (Loshchilov & Hutter, 2019)."""

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        *,
        learning_rate: float,
        weight_decay: float,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
    ) -> None:
        self.parameters = _learning(parameters)
        self.learning_rate, self.weight_decay = learning_rate, weight_decay
        self.betas, self.epsilon = betas, epsilon
        self.steps = 0
        self.means = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.squares = [torch.zeros_like(parameter) for parameter in self.parameters]

    def zero_grad(self) -> None:
        _forget_gradients(self.parameters)

    @torch.no_grad()
    def step(self) -> None:
        self.steps += 1
        first, second = self.betas
        rate = self.learning_rate / (1 - first**self.steps)
        spread = (1 - second**self.steps) ** 0.5
        for parameter, mean, square in zip(self.parameters, self.means, self.squares, strict=True):
            gradient = _gradient(parameter)
            mean.lerp_(gradient, 1 - first)
            square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
            parameter.mul_(1 - self.learning_rate * self.weight_decay)
            parameter.addcdiv_(mean, square.sqrt().div_(spread).add_(self.epsilon), value=-rate)


class SGD:
    """Gradient descent with momentum; the weight decay is part of the gradient, so it is an L2 penalty."""

    def __init__(
        self, parameters: Iterable[nn.Parameter], *, learning_rate: float, momentum: float, weight_decay: float
    ) -> None:
        self.parameters = _learning(parameters)
        self.learning_rate, self.momentum, self.weight_decay = learning_rate, momentum, weight_decay
        self.velocities = [torch.zeros_like(parameter) for parameter in self.parameters]

    def zero_grad(self) -> None:
        _forget_gradients(self.parameters)

    @torch.no_grad()
    def step(self) -> None:
        for parameter, velocity in zip(self.parameters, self.velocities, strict=True):
            velocity.mul_(self.momentum).add_(_gradient(parameter)).add_(parameter, alpha=self.weight_decay)
            parameter.sub_(velocity, alpha=self.learning_rate)


def _learning(parameters: Iterable[nn.Parameter]) -> list[nn.Parameter]:
    return [parameter for parameter in parameters if parameter.requires_grad]


def _forget_gradients(parameters: list[nn.Parameter]) -> None:
    for parameter in parameters:
        parameter.grad = None


def _gradient(parameter: nn.Parameter) -> Tensor:
    if parameter.grad is None:
        raise ValueError("a parameter has no gradient: backward() comes before step()")
    return parameter.grad
