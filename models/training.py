"""Trains a network from scratch on weighted labels until it has converged."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from models import networks
from models.augmentation import shifted
from models.convergence import Convergence
from models.device import choose_device
from models.optimiser import AdamW

BATCH = 32
LEARNING_RATE = 1e-3
WEIGHT_DECAY = 1e-2
EPOCHS_AT_MOST = 100


class Diverged(RuntimeError):
    """The loss stopped being a finite number; the network must not be used."""


@dataclass(frozen=True)
class Progress:
    """Where a training run stands after an epoch; loss and accuracy are those of the epoch's own steps."""

    epoch: int
    of: int  # epochs at most: convergence usually comes earlier
    loss: float
    accuracy: float
    seconds_left: float  # at most, for the same reason


@dataclass(frozen=True)
class Trained:
    """A network that has been trained, in evaluation mode, and how that went."""

    network: nn.Module
    network_name: str
    metrics: dict[str, float]  # epochs, loss, accuracy (both on the training set, without augmentation), seconds


def weighted_cross_entropy(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """Σ w·loss / Σ w: an example of weight 3 counts as three equal examples of weight 1."""
    return (weights * functional.cross_entropy(logits, labels, reduction="none")).sum() / weights.sum()


def train(
    images: NDArray[np.uint8],
    labels: NDArray[np.int64],
    weights: NDArray[np.float32],
    *,
    network: str,
    classes: int,
    seed: int,
    device: str | torch.device | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Trained:
    """Train the named network on images (n, 3, s, s), labels (n,) in 0 … classes − 1 and weights (n,) above 0.

    It starts from scratch and ends by the rule of `Convergence`, after EPOCHS_AT_MOST epochs at the latest. The same
    seed gives the same network on the same hardware; torch's global random state is left as it was.
    Raises ValueError for input that does not fit together and Diverged when the loss is no longer finite.
    """
    _check(images, labels, weights, size=networks.input_size(network), classes=classes)
    where = choose_device(device)
    started = time.monotonic()
    with _own_random_state(where, seed), _threads(networks.threads(network)):
        model = networks.build(network, classes=classes).to(where)
        run = _Run(
            model,
            torch.from_numpy(np.ascontiguousarray(images)).to(where),
            torch.from_numpy(labels.astype(np.int64)).to(where),
            torch.from_numpy((weights / weights.mean(dtype=np.float64)).astype(np.float32)).to(where),
        )
        convergence = Convergence()
        for epoch in range(1, EPOCHS_AT_MOST + 1):
            loss, accuracy = run.epoch()
            if on_progress is not None:
                left = (time.monotonic() - started) / epoch * (EPOCHS_AT_MOST - epoch)
                on_progress(Progress(epoch, EPOCHS_AT_MOST, loss, accuracy, left))
            if convergence.reached(loss):
                break
        loss, accuracy = run.evaluate()
    seconds = time.monotonic() - started
    return Trained(model, network, {"epochs": epoch, "loss": loss, "accuracy": accuracy, "seconds": seconds})


class _Run:
    """One training run: the network, its optimiser and the training set, weights scaled to a mean of 1."""

    def __init__(self, model: nn.Module, images: Tensor, labels: Tensor, weights: Tensor) -> None:
        self.model, self.images, self.labels, self.weights = model, images, labels, weights
        self.optimiser = AdamW(model.parameters(), learning_rate=LEARNING_RATE, weight_decay=WEIGHT_DECAY)

    def epoch(self) -> tuple[float, float]:
        """One pass in a new random order; the weighted loss and the accuracy seen on the way."""
        self.model.train()
        count = len(self.labels)
        order = torch.randperm(count).to(self.labels.device)
        loss_sum = torch.zeros((), device=self.labels.device)
        correct = torch.zeros((), device=self.labels.device)
        for batch in order.tensor_split(math.ceil(count / BATCH)):
            labels, weights = self.labels[batch], self.weights[batch]
            logits = self.model(shifted(self.images[batch]))
            # divided by the mean weight of the training set, not of the batch: so the steps of an epoch add up
            # to the gradient of the whole weighted loss
            loss = weighted_cross_entropy(logits, labels, weights) * weights.mean()
            self.optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimiser.step()
            loss_sum += loss.detach() * len(batch)
            correct += (logits.argmax(dim=1) == labels).sum()
        return _finite(loss_sum.item() / count), correct.item() / count

    @torch.inference_mode()
    def evaluate(self) -> tuple[float, float]:
        """The weighted loss and the accuracy on the whole training set, as the finished network sees it."""
        self.model.eval()
        logits = torch.cat([self.model(images) for images in torch.split(self.images, 8 * BATCH)])
        loss = weighted_cross_entropy(logits, self.labels, self.weights).item()
        return _finite(loss), (logits.argmax(dim=1) == self.labels).double().mean().item()


def _finite(loss: float) -> float:
    if not math.isfinite(loss):
        raise Diverged(f"training diverged: the loss became {loss}")
    return loss


@contextmanager
def _own_random_state(device: torch.device, seed: int) -> Iterator[None]:
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _check(
    images: NDArray[np.uint8],
    labels: NDArray[np.int64],
    weights: NDArray[np.float32],
    *,
    size: int,
    classes: int,
) -> None:
    if images.dtype != np.uint8 or images.shape[1:] != (3, size, size):
        raise ValueError(f"images must be uint8 of shape (n, 3, {size}, {size}), not {images.dtype} of {images.shape}")
    if not len(images):
        raise ValueError("there is no labelled image to train on")
    if labels.shape != (len(images),) or weights.shape != (len(images),):
        raise ValueError(
            f"{len(images)} images need as many labels and weights, not {labels.shape} and {weights.shape}"
        )
    if not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(f"labels must be class numbers (integers), not {labels.dtype}")
    outside = np.flatnonzero((labels < 0) | (labels >= classes))
    if outside.size:
        raise ValueError(f"labels must be 0 … {classes - 1}: example {outside[0]} has {labels[outside[0]]}")
    unusable = np.flatnonzero(~(np.isfinite(weights) & (weights > 0)))
    if unusable.size:
        raise ValueError(f"weights must be finite and above 0: example {unusable[0]} has {weights[unusable[0]]}")
