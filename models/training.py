"""Trains any network on weighted labels until it has converged."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

from models.augmentation import shifted
from models.convergence import Convergence
from models.device import Compute, Portion, choose
from models.feed import Feed, in_order, once
from models.learner import Diverged, Examples, OnProgress, Progress, Rows, unheard
from models.optimiser import optimiser_for
from models.recipe import Recipe

ENOUGH_TO_HOLD_OUT = 100  # examples; of fewer, none can be spared and accuracy on so few would say nothing
HELD_OUT_AT_MOST = 100
BATCH_WITHOUT_GRADIENTS = 256


def weighted_cross_entropy(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """Σ w·loss / Σ w: an example of weight 3 counts as three equal examples of weight 1."""
    return (weights * functional.cross_entropy(logits, labels, reduction="none")).sum() / weights.sum()


def train(
    module: nn.Module,
    examples: Examples,
    recipe: Recipe,
    *,
    seed: int,
    compute: Compute | None = None,
    hold_out: bool = True,
    on_progress: OnProgress = unheard,
) -> dict[str, float]:
    """Train a module that maps rows to logits (n, classes), in place; it is left in evaluation mode on its device.

    Of 100 examples or more, a tenth (at most 100) is held out, unless `hold_out` is off, until the run has converged,
    and tells how accurate the model is on what it has not seen. Then they are given back, so that no label is wasted:
    training goes on with all until that has converged too, for at most a quarter of the epochs so far; a cosine
    schedule starts anew for it.

    The same seed gives the same result on the same hardware; torch's global random state is left as it was.
    Returns, by name: epochs, loss and accuracy (on all examples, at the end), held_out (how many), held_out_accuracy
    (weighted, before they were given back; only where there are any), learning_rate and seconds.
    Raises Diverged when the loss is no longer finite, and NotEnoughMemory.
    """
    report = _Report(on_progress)
    with seeded(seed, (compute := compute or choose()).device), _threads(recipe.threads):
        run = _Run(module, examples, recipe, compute)
        held_out, rest = _held_out(len(examples), at_all=hold_out)
        report.epochs_after = _second_phase(recipe.epochs_at_most) if held_out.size else 0
        metrics = {"held_out": float(held_out.size), "learning_rate": run.full_rate}

        def epoch_done(epoch: int, of: int, loss: float) -> None:
            report.epoch(epoch, of, loss, run.accuracy(held_out) if held_out.size else None)

        epochs = run.until_converged(rest, recipe.epochs_at_most, epoch_done)
        if held_out.size:
            accuracy = metrics["held_out_accuracy"] = run.accuracy(held_out)
            report.epochs_before, report.epochs_after = epochs, 0
            # they are learned from now, so the accuracy last measured on them is the last honest one
            epochs += run.until_converged(
                np.arange(len(examples)),
                _second_phase(epochs),
                lambda epoch, of, loss: report.epoch(epoch, of, loss, accuracy),
            )
        loss, accuracy = run.finish()
    return metrics | {"epochs": epochs, "loss": loss, "accuracy": accuracy, "seconds": report.seconds()}


def logits(
    module: nn.Module, rows: Rows, *, compute: Compute, batch: int = BATCH_WITHOUT_GRADIENTS
) -> NDArray[np.float32]:
    """What a module in evaluation mode on the device of `compute` says of all rows: (n, classes)."""
    with closing(once(in_order(rows, batch), compute)) as batches:
        return _answers(module, batches, compute, _portion(rows, batch, compute)).cpu().numpy()


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Random numbers of torch come from this seed within, and go on as if nothing had been after."""
    before = torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        # else a GPU may take another algorithm, with another rounding, each time
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
        try:
            yield
        finally:
            torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = before


class _Run:
    """One training run: the module, its optimiser and the training set."""

    def __init__(self, module: nn.Module, examples: Examples, recipe: Recipe, compute: Compute) -> None:
        self.recipe, self.compute = recipe, compute
        self.images = len(examples.rows.shape) == 4
        self.module = module.to(compute.device)
        if self.images and compute.channels_last:
            module.to(memory_format=torch.channels_last)
        self.optimiser = optimiser_for(recipe, module.parameters())
        self.full_rate = self.optimiser.learning_rate
        self.feed = Feed(examples.rows, compute)
        self.labels = torch.from_numpy(examples.labels.astype(np.int64)).to(compute.device)
        self.given_weights = examples.weights.astype(np.float64)
        self.weights = _balanced(examples) if recipe.balance else self.given_weights
        self.portion = Portion(recipe.batch)
        self.portion_without_gradients = _portion(examples.rows, BATCH_WITHOUT_GRADIENTS, compute)

    def until_converged(
        self, places: NDArray[np.int64], at_most: int, epoch_done: Callable[[int, int, float], None]
    ) -> int:
        """Epochs over the examples at these places until the recipe calls it converged; says how many it took."""
        patience = self.recipe.patience if self.recipe.schedule == "constant" else None
        convergence = Convergence(low_enough=self.recipe.low_enough, patience=patience)
        for epoch in range(1, at_most + 1):
            self.optimiser.learning_rate = self.full_rate * self.recipe.rate_share(epoch, at_most)
            loss = self.epoch(places)
            epoch_done(epoch, at_most, loss)
            if convergence.reached(loss):
                break
        return epoch

    def epoch(self, places: NDArray[np.int64]) -> float:
        """One pass over these examples in a new random order; the weighted loss met on the way."""
        self._learn()
        count, device = len(places), self.compute.device
        # scaled to a mean of 1 over the whole pass, not over each batch: so its steps add up to the gradient of the
        # whole weighted loss
        weights = torch.from_numpy((self.weights / self.weights[places].mean()).astype(np.float32)).to(device)
        parts = np.array_split(places[torch.randperm(count).numpy()], math.ceil(count / self.recipe.batch))
        loss = torch.zeros((), device=device)
        with closing(self.feed.batches(parts)) as batches:
            for part, rows in zip(parts, batches, strict=True):
                at = torch.from_numpy(part).to(device)
                loss += self.step(rows, self.labels[at], weights[at]) * len(part)
        return _finite(loss.item() / count)

    def step(self, rows: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """One step of the optimiser on Σ w·loss / n of a batch, which is returned.

        Where memory does not hold the batch, its parts' gradients are summed up: the step stays the same.
        """
        if self.recipe.augment and self.images:
            rows = shifted(rows)

        def gradients(portion: int) -> Tensor:
            self.optimiser.zero_grad()
            total = torch.zeros((), device=rows.device)
            for start in range(0, len(rows), portion):
                some = slice(start, start + portion)
                answers = _forward(self.module, rows[some], self.compute)
                loss = weighted_cross_entropy(answers, labels[some], weights[some]) * weights[some].sum() / len(rows)
                loss.backward()  # type: ignore[no-untyped-call]
                total += loss.detach()
            return total

        loss = self.portion.that_fits(len(rows), gradients)
        self.optimiser.step()
        return loss

    def accuracy(self, places: NDArray[np.int64]) -> float:
        """The share of the weight, as given, of those examples at these places that the module gets right."""
        right = (self._answers(places).argmax(dim=1) == self.labels[torch.from_numpy(places)]).cpu().numpy()
        return float(np.average(right, weights=self.given_weights[places]))

    def finish(self) -> tuple[float, float]:
        """The weighted loss and the accuracy on the whole training set, as the finished module sees it."""
        answers = self._answers(np.arange(len(self.labels)))
        weights = torch.from_numpy(self.weights.astype(np.float32)).to(self.compute.device)
        loss = _finite(weighted_cross_entropy(answers, self.labels, weights).item())
        if self.images and self.compute.channels_last:
            self.module.to(memory_format=torch.contiguous_format)
        return loss, (answers.argmax(dim=1) == self.labels).double().mean().item()

    def _learn(self) -> None:
        self.module.train()
        if self.recipe.freeze_norms:
            for layer in self.module.modules():
                if isinstance(layer, _BatchNorm):
                    layer.eval()

    def _answers(self, places: NDArray[np.int64]) -> Tensor:
        self.module.eval()
        parts = np.array_split(places, math.ceil(len(places) / BATCH_WITHOUT_GRADIENTS))
        with closing(self.feed.batches(parts)) as batches:
            return _answers(self.module, batches, self.compute, self.portion_without_gradients)


class _Report:
    """Tells how far a run is, and how long it will take at most."""

    def __init__(self, on_progress: OnProgress) -> None:
        self.on_progress = on_progress
        self.started = time.monotonic()
        self.epochs_before = self.epochs_after = 0  # of the phase that is running, at most

    def seconds(self) -> float:
        return time.monotonic() - self.started

    def epoch(self, epoch: int, of: int, loss: float, accuracy: float | None) -> None:
        done, at_most = self.epochs_before + epoch, self.epochs_before + of + self.epochs_after
        left = self.seconds() / done * (at_most - done)
        self.on_progress(Progress(done, at_most, loss, accuracy, left))


def _held_out(count: int, *, at_all: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Random places of those held out, and of the rest."""
    if count < ENOUGH_TO_HOLD_OUT or not at_all:
        return np.empty(0, dtype=np.int64), np.arange(count)
    order = torch.randperm(count).numpy()
    held_out = min(count // 10, HELD_OUT_AT_MOST)
    return np.sort(order[:held_out]), np.sort(order[held_out:])


def _second_phase(epochs: int) -> int:
    """For how many epochs at most those held out are learned from, after so many without them."""
    return max(1, epochs // 4)


def _balanced(examples: Examples) -> NDArray[np.float64]:
    weights = examples.weights.astype(np.float64)
    of_class = np.bincount(examples.labels, weights, minlength=examples.classes)
    balanced: NDArray[np.float64] = weights / of_class[examples.labels]
    return balanced


def _answers(module: nn.Module, batches: Iterable[Tensor], compute: Compute, portion: Portion) -> Tensor:
    def answers(rows: Tensor) -> Tensor:
        return portion.that_fits(
            len(rows), lambda size: torch.cat([_forward(module, some, compute) for some in torch.split(rows, size)])
        )

    with torch.inference_mode():
        return torch.cat([answers(rows) for rows in batches])


def _portion(rows: Rows, batch: int, compute: Compute) -> Portion:
    """How much of a batch is worked on at once without gradients: of images, no more than suits the device."""
    if len(rows.shape) != 4 or not len(rows):
        return Portion(batch)
    return Portion(min(batch, max(1, compute.together // rows[:1].nbytes)))


def _forward(module: nn.Module, rows: Tensor, compute: Compute) -> Tensor:
    if compute.channels_last and rows.ndim == 4:
        rows = rows.contiguous(memory_format=torch.channels_last)
    # descriptions stay in float32: a head has little to gain, and draws are made of what it says to the last digit
    half = compute.autocast if rows.ndim == 4 else None
    with torch.autocast(compute.device.type, dtype=half) if half else nullcontext():
        answers: Tensor = module(rows)
    return answers.float()


def _finite(loss: float) -> float:
    if not math.isfinite(loss):
        raise Diverged(f"training diverged: the loss became {loss}")
    return loss


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
