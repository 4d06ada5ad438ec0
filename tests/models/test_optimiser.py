"""Our AdamW makes the steps of torch's own."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from models.optimiser import AdamW


def gradients(seed: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, dtype=torch.float64, generator=generator) for shape in ((7, 3), (5,))]


def test_its_steps_are_those_of_the_kernel_inside_torch() -> None:
    ours = [nn.Parameter(tensor) for tensor in gradients(0)]
    optimiser = AdamW(ours, learning_rate=0.01, weight_decay=0.1)
    theirs = gradients(0)
    means, squares = [torch.zeros_like(t) for t in theirs], [torch.zeros_like(t) for t in theirs]
    steps = [torch.zeros(()) for _ in theirs]

    for seed in range(1, 30):
        for parameter, gradient in zip(ours, gradients(seed), strict=True):
            parameter.grad = gradient
        optimiser.step()
        for step in steps:
            step += 1
        torch._fused_adamw_(  # what torch.optim.AdamW(fused=True) calls
            theirs, gradients(seed), means, squares, [], steps,
            lr=0.01, beta1=0.9, beta2=0.999, weight_decay=0.1, eps=1e-8, amsgrad=False, maximize=False,
        )  # fmt: skip

    for mine, reference in zip(ours, theirs, strict=True):
        assert torch.allclose(mine, reference, rtol=1e-12, atol=1e-14)


def test_a_step_without_gradients_is_an_error() -> None:
    with pytest.raises(ValueError, match="no gradient"):
        AdamW([nn.Parameter(torch.ones(2))], learning_rate=0.1, weight_decay=0.1).step()
