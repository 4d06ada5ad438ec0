"""The learners of this package: a network trained in full, and a head on what a frozen backbone makes of an image."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from models import networks, training
from models.device import Compute
from models.heads import LinearHead
from models.learner import Examples, Fitted, OnProgress, Rows, unheard
from models.learning_rate import choose_rate
from models.pretrained import Pretrained
from models.recipe import Recipe

DESCRIPTIONS_AT_ONCE = 65_536


@dataclass(frozen=True)
class FittedNetwork:
    """A network or a head, in evaluation mode on its device."""

    module: nn.Module
    compute: Compute
    metrics: Mapping[str, float]
    image_size: int | None = None  # None: it reads descriptions

    def logits(self, rows: Rows) -> NDArray[np.float32]:
        if self.image_size is None:
            return training.logits(self.module, rows, compute=self.compute, batch=DESCRIPTIONS_AT_ONCE)
        check_images(rows, self.image_size)
        return training.logits(self.module, rows, compute=self.compute)

    def tensors(self) -> dict[str, NDArray[Any]]:
        return {name: tensor.cpu().numpy() for name, tensor in self.module.state_dict().items()}


def check_images(rows: Rows, size: int) -> None:
    kind = rows[:0].dtype
    if kind != np.uint8 or rows.shape[1:] != (3, size, size):
        raise ValueError(f"images must be uint8 of shape (n, 3, {size}, {size}), not {kind} of shape {rows.shape}")


class FullLearner:
    """Trains every weight of the named network, from its pre-trained ones where there are any."""

    frozen = None

    def __init__(self, name: str, recipe: Recipe, compute: Compute, start: Pretrained | None = None) -> None:
        self.name, self.recipe, self.compute = name, recipe, compute
        self._pretrained = start
        self.input_size = networks.input_size(name)

    def describe(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        raise NotImplementedError("nothing is frozen: the examples are the images themselves")

    def fit(
        self, examples: Examples, *, seed: int, start: Fitted | None = None, on_progress: OnProgress = unheard
    ) -> FittedNetwork:
        def fresh() -> nn.Module:
            return networks.build(self.name, classes=examples.classes, pretrained=self._pretrained)

        check_images(examples.rows, self.input_size)
        fitted = _fit(fresh, examples, self.recipe, self.compute, seed, start, on_progress)
        return replace(fitted, image_size=self.input_size)

    def restore(self, tensors: Mapping[str, NDArray[Any]], *, classes: int) -> FittedNetwork:
        with torch.device("meta"):  # no memory and no random numbers for weights that are replaced at once
            network = networks.build(self.name, classes=classes)
        return replace(_restored(network, tensors, self.compute), image_size=self.input_size)


class HeadLearner:
    """Trains a head on what a frozen backbone makes of an image.

    `backbone` is made when the first image is described: training and scoring of images described before need none.
    """

    def __init__(
        self,
        backbone: Callable[[], nn.Module],
        head: Callable[[int], nn.Module],
        *,
        frozen: str,
        input_size: int,
        recipe: Recipe,
        compute: Compute,
    ) -> None:
        self._make_backbone, self._make_head = backbone, head
        self.frozen, self.input_size = frozen, input_size
        self.recipe, self.compute = recipe, compute
        self._making = threading.Lock()

    @cached_property
    def _backbone(self) -> nn.Module:
        with self._making:
            return self._make_backbone().to(self.compute.device).eval().requires_grad_(False)

    def describe(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        exact = replace(self.compute, autocast=None)  # the same on every device, as they are kept under one name
        return training.logits(self._backbone, images, compute=exact)

    def fit(
        self, examples: Examples, *, seed: int, start: Fitted | None = None, on_progress: OnProgress = unheard
    ) -> FittedNetwork:
        def fresh() -> nn.Module:
            head = self._make_head(examples.classes)
            if isinstance(head, LinearHead):
                head.standardise(torch.from_numpy(np.asarray(examples.rows[:])))
            return head

        return _fit(fresh, examples, self.recipe, self.compute, seed, start, on_progress)

    def restore(self, tensors: Mapping[str, NDArray[Any]], *, classes: int) -> FittedNetwork:
        with torch.device("meta"):
            head = self._make_head(classes)
        return _restored(head, tensors, self.compute)


def _fit(
    fresh: Callable[[], nn.Module],
    examples: Examples,
    recipe: Recipe,
    compute: Compute,
    seed: int,
    start: Fitted | None,
    on_progress: OnProgress,
) -> FittedNetwork:
    if recipe.learning_rate is None:
        chosen = choose_rate(fresh, examples, recipe, seed=seed, compute=compute, on_progress=on_progress)
        recipe = replace(recipe, learning_rate=chosen.rate)
    with training.seeded(seed, compute.device):
        module = fresh()
    if start is not None:
        _fill(module, start.tensors())
    # a model to go on from has learnt most examples already, so accuracy on any of them would be a lie
    metrics = training.train(
        module, examples, recipe, seed=seed, compute=compute, hold_out=start is None, on_progress=on_progress
    )
    return FittedNetwork(module.requires_grad_(False), compute, metrics)


def _restored(module: nn.Module, tensors: Mapping[str, NDArray[Any]], compute: Compute) -> FittedNetwork:
    _fill(module, tensors)
    return FittedNetwork(module.to(compute.device).eval().requires_grad_(False), compute, {})


def _fill(module: nn.Module, tensors: Mapping[str, NDArray[Any]]) -> None:
    state = {name: torch.from_numpy(np.array(array)) for name, array in tensors.items()}
    try:
        module.load_state_dict(state, assign=True)
    except RuntimeError as error:
        raise ValueError(f"the weights do not fit the network: {error}") from error
