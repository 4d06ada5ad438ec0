"""AdamW without torch.optim, whose classes import torch's compiler on first use: seconds per process, for nothing."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn


class AdamW:
    """Adam with decoupled weight decay (Loshchilov & Hutter, 2019), for parameters that always have a gradient."""

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        *,
        learning_rate: float,
        weight_decay: float,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
    ) -> None:
        self.parameters = list(parameters)
        self.learning_rate, self.weight_decay = learning_rate, weight_decay
        self.betas, self.epsilon = betas, epsilon
        self.steps = 0
        self.means = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.squares = [torch.zeros_like(parameter) for parameter in self.parameters]

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        self.steps += 1
        first, second = self.betas
        rate = self.learning_rate / (1 - first**self.steps)
        spread = (1 - second**self.steps) ** 0.5
        for parameter, mean, square in zip(self.parameters, self.means, self.squares, strict=True):
            gradient = parameter.grad
            if gradient is None:
                raise ValueError("a parameter has no gradient: backward() comes before step()")
            mean.lerp_(gradient, 1 - first)
            square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
            parameter.mul_(1 - self.learning_rate * self.weight_decay)
            parameter.addcdiv_(mean, square.sqrt().div_(spread).add_(self.epsilon), value=-rate)
