"""Our optimisers make the steps of torch's own."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from models.optimiser import SGD, AdamW, Optimiser, optimiser_for
from models.recipe import DEFAULT, PAPER


def gradients(seed: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, dtype=torch.float64, generator=generator) for shape in ((7, 3), (5,))]


def thirty_steps(optimiser: Optimiser, parameters: list[nn.Parameter]) -> None:
    for seed in range(1, 31):
        optimiser.learning_rate = rate(seed)
        for parameter, gradient in zip(parameters, gradients(seed), strict=True):
            parameter.grad = gradient
        optimiser.step()


def rate(step: int) -> float:
    return 0.01 if step < 20 else 0.003  # as a schedule changes it


def assert_equal(ours: list[nn.Parameter], theirs: list[Tensor]) -> None:
    for mine, reference in zip(ours, theirs, strict=True):
        assert torch.allclose(mine, reference, rtol=1e-12, atol=1e-14)


def test_the_steps_of_adamw_are_those_of_the_kernel_inside_torch() -> None:
    ours = [nn.Parameter(tensor) for tensor in gradients(0)]
    thirty_steps(AdamW(ours, learning_rate=0.01, weight_decay=0.1), ours)

    theirs = gradients(0)
    means, squares = [torch.zeros_like(t) for t in theirs], [torch.zeros_like(t) for t in theirs]
    steps = [torch.zeros(()) for _ in theirs]
    for seed in range(1, 31):
        for step in steps:
            step += 1
        torch._fused_adamw_(  # what torch.optim.AdamW(fused=True) calls
            theirs, gradients(seed), means, squares, [], steps,
            lr=rate(seed), beta1=0.9, beta2=0.999, weight_decay=0.1, eps=1e-8, amsgrad=False, maximize=False,
        )  # fmt: skip

    assert_equal(ours, theirs)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_the_steps_of_sgd_are_those_of_the_kernel_inside_torch(momentum: float) -> None:
    ours = [nn.Parameter(tensor) for tensor in gradients(0)]
    thirty_steps(SGD(ours, learning_rate=0.01, momentum=momentum, weight_decay=0.1), ours)

    theirs = gradients(0)
    velocities = [torch.zeros_like(t) for t in theirs] if momentum else []
    for seed in range(1, 31):
        torch._fused_sgd_(  # what torch.optim.SGD(fused=True) calls
            theirs, gradients(seed), velocities,
            weight_decay=0.1, momentum=momentum, lr=rate(seed), dampening=0.0, nesterov=False, maximize=False,
            is_first_step=seed == 1,
        )  # fmt: skip

    assert_equal(ours, theirs)


@pytest.mark.parametrize("optimiser", [AdamW, SGD])
def test_parameters_that_need_no_gradient_are_left_alone(optimiser: type[AdamW] | type[SGD]) -> None:
    frozen = nn.Parameter(torch.ones(2), requires_grad=False)
    momentum = {"momentum": 0.9} if optimiser is SGD else {}
    optimiser([frozen], learning_rate=0.1, weight_decay=0.1, **momentum).step()
    assert torch.equal(frozen, torch.ones(2))


def test_a_step_without_gradients_is_an_error() -> None:
    with pytest.raises(ValueError, match="no gradient"):
        AdamW([nn.Parameter(torch.ones(2))], learning_rate=0.1, weight_decay=0.1).step()


def test_the_recipe_names_the_optimiser() -> None:
    assert isinstance(optimiser_for(DEFAULT, []), AdamW)
    with pytest.raises(ValueError, match="must be chosen before training"):
        optimiser_for(PAPER, [])
