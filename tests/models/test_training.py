"""Training is weighted, reproducible, stops by itself, gives held-out labels back and makes do with the memory."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from models import networks
from models.device import Compute, NotEnoughMemory
from models.learner import Diverged, Examples, OnProgress, Progress, unheard
from models.recipe import DEFAULT, Recipe
from models.training import logits, seeded, train, weighted_cross_entropy

CPU = Compute(torch.device("cpu"))
STEADY = Recipe(
    optimiser="sgd", learning_rate=0.1, weight_decay=0.0, augment=False, threads=1, low_enough=0.0, epochs_at_most=5
)


def bars(count: int, *, seed: int, weights: Any = 1.0) -> Examples:
    """Noisy images with one bright vertical bar; its place is the class."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    images = rng.integers(0, 120, (count, 3, 28, 28), dtype=np.uint8)
    for image, label in zip(images, labels, strict=True):
        image[:, 4:24, 4 + 8 * label : 8 + 8 * label] += 130
    return Examples(images, labels, np.full(count, weights, dtype=np.float32), 3)


def points(count: int, *, seed: int = 0, classes: int = 3, spread: float = 1.0) -> Examples:
    """Clouds around the corners of a simplex in 8 dimensions, with uneven weights."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, count)
    rows = (np.eye(8)[labels] * 2 + spread * rng.normal(size=(count, 8))).astype(np.float32)
    return Examples(rows, labels, rng.uniform(0.5, 2, count).astype(np.float32), classes)


def small_cnn(*, seed: int = 3) -> nn.Module:
    with seeded(seed, CPU.device):
        return networks.build("small-cnn", classes=3)


def linear(*, classes: int = 3) -> nn.Module:
    with seeded(0, CPU.device):
        return nn.Linear(8, classes)


def trained(
    examples: Examples, recipe: Recipe = DEFAULT, *, seed: int = 3, on_progress: OnProgress = unheard
) -> tuple[nn.Module, dict[str, float]]:
    network = small_cnn(seed=seed)
    return network, train(network, examples, recipe, seed=seed, compute=CPU, on_progress=on_progress)


def parameters(network: nn.Module) -> Tensor:
    return torch.cat([tensor.flatten() for tensor in network.state_dict().values()])


@pytest.fixture(scope="module")
def training_set() -> Examples:
    return bars(48, seed=1)


@pytest.fixture(scope="module")
def unseen() -> Examples:
    return bars(300, seed=2)


# The weighted loss


def test_a_weight_counts_like_that_many_repeats() -> None:
    generator = torch.Generator().manual_seed(0)
    answers = torch.randn(40, 5, dtype=torch.float64, generator=generator)
    labels = torch.randint(0, 5, (40,), generator=generator)
    repeats = torch.randint(1, 5, (40,), generator=generator)

    weighted = weighted_cross_entropy(answers, labels, repeats.double())
    repeated = nn.functional.cross_entropy(answers.repeat_interleave(repeats, 0), labels.repeat_interleave(repeats))

    assert weighted.item() == pytest.approx(repeated.item(), rel=1e-14)


def test_a_weight_pulls_on_the_network_like_that_many_repeats(unseen: Examples) -> None:
    network = small_cnn().eval()  # without dropout, which is random per repeat
    twin = copy.deepcopy(network)
    images, labels = torch.from_numpy(unseen.rows[:24]), torch.from_numpy(unseen.labels[:24])
    repeats = torch.arange(24) % 4 + 1

    weighted_cross_entropy(network(images), labels, repeats.float()).backward()  # type: ignore[no-untyped-call]
    repeated = twin(images.repeat_interleave(repeats, 0))
    nn.functional.cross_entropy(repeated, labels.repeat_interleave(repeats)).backward()  # type: ignore[no-untyped-call]

    for ours, theirs in zip(network.parameters(), twin.parameters(), strict=True):
        assert ours.grad is not None
        assert theirs.grad is not None
        assert torch.allclose(ours.grad, theirs.grad, rtol=1e-4, atol=1e-6)


class Normed(nn.Module):
    """A network with batch norms, whose statistics come from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=4), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 7 * 7, 3)
        )

    def forward(self, images: Tensor) -> Tensor:
        answers: Tensor = self.layers(images.float() / 255)
        return answers


@pytest.mark.parametrize("optimiser", ["sgd", "adamw"])
def test_a_whole_training_on_weights_is_that_on_repeats(optimiser: str) -> None:
    repeats = np.arange(24) % 4 + 1
    once = replace(bars(24, seed=4), weights=repeats.astype(np.float32))
    again = Examples(
        np.repeat(once.rows[:], repeats, axis=0), np.repeat(once.labels, repeats), np.ones(60, dtype=np.float32), 3
    )
    recipe = replace(STEADY, optimiser=optimiser, learning_rate=0.01, batch=60, freeze_norms=True, epochs_at_most=40)
    with seeded(0, CPU.device):
        network = Normed()
    twin = copy.deepcopy(network)

    loss = train(network, once, recipe, seed=1, compute=CPU)["loss"]
    twins_loss = train(twin, again, recipe, seed=1, compute=CPU)["loss"]

    assert loss < 0.7
    assert loss == pytest.approx(twins_loss, rel=1e-3)
    assert torch.allclose(parameters(network), parameters(twin), rtol=1e-3, atol=1e-4)


def test_contradicting_labels_are_settled_by_their_weights() -> None:
    """The same grey image, labelled 0 with weight 3 and 1 with weight 1: P(0) must come out near 3/4."""
    images = np.full((60, 3, 28, 28), 99, dtype=np.uint8)
    labels = np.arange(60, dtype=np.int64) % 2
    examples = Examples(images, labels, np.where(labels == 0, 3, 1).astype(np.float32), 2)
    with seeded(1, CPU.device):
        network = networks.build("small-cnn", classes=2)
    train(network, examples, DEFAULT, seed=1, compute=CPU)
    answer = torch.from_numpy(logits(network, images[:1], compute=CPU)).softmax(dim=1)
    assert answer[0, 0].item() == pytest.approx(0.75, abs=0.08)


def test_balance_gives_every_class_the_same_say() -> None:
    """One grey image, labelled 0 nine times as often as 1: with balance the two must come out even."""
    labels = (np.arange(60) % 10 == 0).astype(np.int64)
    examples = Examples(np.ones((60, 8), dtype=np.float32), labels, np.ones(60, dtype=np.float32), 2)
    shares = {}
    for balance in (False, True):
        module = linear(classes=2)
        train(module, examples, replace(STEADY, balance=balance, batch=60, epochs_at_most=200), seed=1, compute=CPU)
        answer = torch.from_numpy(logits(module, examples.rows[:1], compute=CPU)).softmax(dim=1)
        shares[balance] = answer[0, 1].item()
    assert shares[False] == pytest.approx(0.1, abs=0.02)
    assert shares[True] == pytest.approx(0.5, abs=0.02)


def test_only_the_ratios_of_weights_count(training_set: Examples) -> None:
    doubled = replace(training_set, weights=training_set.weights * 2)
    assert torch.equal(parameters(trained(training_set)[0]), parameters(trained(doubled)[0]))


# Repeatable


def test_the_same_seed_gives_the_same_network_whatever_was_drawn_before(training_set: Examples) -> None:
    torch.manual_seed(1)
    first, _ = trained(training_set)
    torch.manual_seed(2)
    second, _ = trained(training_set)
    assert torch.equal(parameters(first), parameters(second))


def test_another_seed_gives_another_network(training_set: Examples) -> None:
    one, other = trained(training_set, seed=3)[0], trained(training_set, seed=4)[0]
    assert not torch.equal(parameters(one), parameters(other))


def test_the_global_random_state_is_left_alone(training_set: Examples) -> None:
    before = torch.get_rng_state()
    trained(training_set)
    assert torch.equal(torch.get_rng_state(), before)
    with pytest.raises(Diverged):
        trained(training_set, replace(DEFAULT, learning_rate=1e30))
    assert torch.equal(torch.get_rng_state(), before)


def test_the_number_of_threads_is_given_back_and_does_not_change_the_network(training_set: Examples) -> None:
    before = torch.get_num_threads()
    networks_by_threads = {}
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            networks_by_threads[threads] = parameters(trained(training_set)[0])
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert torch.equal(networks_by_threads[1], networks_by_threads[2])


def test_rows_read_ahead_train_the_same_network_as_rows_kept_on_the_device(training_set: Examples) -> None:
    kept, _ = trained(training_set)
    read_ahead = small_cnn()
    train(read_ahead, training_set, DEFAULT, seed=3, compute=replace(CPU, keep=0))
    assert torch.equal(parameters(kept), parameters(read_ahead))


# Convergence


def test_it_learns_and_stops_before_the_cap(training_set: Examples, unseen: Examples) -> None:
    network, metrics = trained(training_set)
    assert metrics["epochs"] < DEFAULT.epochs_at_most
    assert metrics["accuracy"] == 1.0
    assert metrics["loss"] < DEFAULT.low_enough
    assert metrics["seconds"] > 0
    assert metrics["learning_rate"] == DEFAULT.learning_rate
    assert not network.training
    assert (logits(network, unseen.rows, compute=CPU).argmax(axis=1) == unseen.labels).mean() > 0.98


def test_labels_that_cannot_be_learned_stop_by_patience(training_set: Examples) -> None:
    _, metrics = trained(replace(training_set, rows=np.full_like(training_set.rows, 50)))
    assert metrics["epochs"] < DEFAULT.epochs_at_most
    assert metrics["loss"] == pytest.approx(math.log(3), abs=0.1)


def test_the_cap_ends_a_run_that_does_not_converge(training_set: Examples) -> None:
    _, metrics = trained(training_set, replace(DEFAULT, epochs_at_most=2))
    assert metrics["epochs"] == 2


def test_a_cosine_schedule_does_not_run_out_of_patience() -> None:
    unlearnable = replace(points(30), rows=np.zeros((30, 8), dtype=np.float32))
    recipe = replace(STEADY, patience=1, epochs_at_most=25)
    epochs = {}
    for schedule in ("constant", "cosine"):
        metrics = train(linear(), unlearnable, replace(recipe, schedule=schedule), seed=0, compute=CPU)
        epochs[schedule] = metrics["epochs"]
    assert epochs["constant"] < epochs["cosine"] == 25


def test_a_single_label_can_be_trained_on() -> None:
    assert trained(bars(1, seed=1))[1]["accuracy"] == 1.0


def test_a_diverged_run_says_so(training_set: Examples) -> None:
    with pytest.raises(Diverged, match="the loss became"):
        trained(training_set, replace(DEFAULT, learning_rate=1e30))


def test_a_learning_rate_that_has_not_been_chosen_is_an_error(training_set: Examples) -> None:
    with pytest.raises(ValueError, match="learning rate must be chosen"):
        trained(training_set, replace(DEFAULT, learning_rate=None))


# Progress and held-out labels


def test_progress_is_told_after_every_epoch(training_set: Examples) -> None:
    seen: list[Progress] = []
    _, metrics = trained(training_set, on_progress=seen.append)

    assert [progress.epoch for progress in seen] == list(range(1, int(metrics["epochs"]) + 1))
    assert {progress.of for progress in seen} == {DEFAULT.epochs_at_most}
    assert seen[-1].loss < DEFAULT.low_enough < seen[0].loss
    assert all(progress.seconds_left > 0 for progress in seen)


def test_of_fewer_than_100_labels_none_is_held_out() -> None:
    seen: list[Progress] = []
    metrics = train(linear(), points(99), STEADY, seed=1, compute=CPU, on_progress=seen.append)
    assert metrics["held_out"] == 0
    assert "held_out_accuracy" not in metrics
    assert {progress.accuracy for progress in seen} == {None}


@pytest.mark.parametrize(("labels", "held_out"), [(100, 10), (345, 34), (1500, 100)])
def test_a_tenth_but_no_more_than_100_labels_are_held_out(labels: int, held_out: int) -> None:
    seen: list[Progress] = []
    metrics = train(linear(), points(labels), STEADY, seed=1, compute=CPU, on_progress=seen.append)
    assert metrics["held_out"] == held_out
    assert metrics["held_out_accuracy"] > 0.6
    assert all(progress.accuracy is not None and 0 <= progress.accuracy <= 1 for progress in seen)


def test_accuracy_is_measured_on_what_was_not_learned() -> None:
    """Labels drawn by lot can be learned by heart, but not guessed."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 600)).astype(np.float32)
    by_lot = Examples(rows, rng.integers(0, 3, 400), np.ones(400, dtype=np.float32), 3)
    with seeded(0, CPU.device):
        module = nn.Linear(600, 3)
    metrics = train(module, by_lot, replace(STEADY, epochs_at_most=40), seed=2, compute=CPU)
    assert metrics["accuracy"] > 0.98, "those held out have been given back and learned too"
    assert metrics["held_out_accuracy"] < 0.6


def test_those_held_out_are_given_back_for_at_most_a_quarter_more_epochs() -> None:
    seen: list[Progress] = []
    recipe = replace(STEADY, epochs_at_most=8)
    metrics = train(linear(), points(200), recipe, seed=1, compute=CPU, on_progress=seen.append)

    assert metrics["epochs"] == 10
    assert [progress.epoch for progress in seen] == list(range(1, 11))
    assert {progress.of for progress in seen} == {10}
    assert seen[7].accuracy == seen[8].accuracy == seen[9].accuracy == metrics["held_out_accuracy"]
    assert seen[-1].seconds_left == 0


def test_the_most_epochs_are_known_better_once_it_has_converged() -> None:
    seen: list[Progress] = []
    easy = points(200, spread=0.1)
    metrics = train(
        linear(), easy, replace(STEADY, low_enough=0.3, epochs_at_most=100), seed=1, compute=CPU,
        on_progress=seen.append,
    )  # fmt: skip
    assert seen[0].of == 125
    assert metrics["epochs"] <= seen[-1].of < 20


# Devices and memory


@pytest.mark.slow
def test_a_network_trains_in_bfloat16_with_the_channels_last(training_set: Examples, unseen: Examples) -> None:
    layouts, kinds = set(), set()

    def watch(_: nn.Module, given: tuple[Tensor, ...], answer: Tensor) -> None:
        layouts.add(given[0].is_contiguous(memory_format=torch.channels_last))
        kinds.add(answer.dtype)

    network = small_cnn()
    next(layer for layer in network.modules() if isinstance(layer, nn.Conv2d)).register_forward_hook(watch)
    compute = Compute(torch.device("cpu"), autocast=torch.bfloat16, channels_last=True)
    metrics = train(network, training_set, DEFAULT, seed=3, compute=compute)
    answers = logits(network, unseen.rows, compute=compute)

    assert (layouts, kinds) == ({True}, {torch.bfloat16})
    assert metrics["accuracy"] == 1.0
    assert answers.dtype == np.float32
    assert (answers.argmax(axis=1) == unseen.labels).mean() > 0.98
    assert all(tensor.dtype == torch.float32 for tensor in network.state_dict().values())
    assert all(tensor.is_contiguous() for tensor in network.state_dict().values()), "as files want them"


def gpu_fault(rows: Tensor) -> None:
    raise torch.OutOfMemoryError(f"CUDA out of memory, with {len(rows)} rows")


def cpu_fault(rows: Tensor) -> None:
    torch.empty(len(rows), 2**50)  # more than any machine has: the allocator's own error


class Cramped(nn.Module):
    """Has memory for no more than so many rows; remembers how many it was given."""

    def __init__(self, inside: nn.Module, most: int, fault: Callable[[Tensor], None]) -> None:
        super().__init__()
        self.inside, self.most, self.fault = inside, most, fault
        self.seen: list[int] = []

    def forward(self, rows: Tensor) -> Tensor:
        self.seen.append(len(rows))
        if len(rows) > self.most:
            self.fault(rows)
        answers: Tensor = self.inside(rows)
        return answers


@pytest.mark.parametrize("fault", [gpu_fault, cpu_fault])
def test_too_little_memory_makes_smaller_portions_of_the_same_steps(fault: Callable[[Tensor], None]) -> None:
    examples, recipe = points(60), replace(STEADY, batch=30)
    roomy, cramped = linear(), Cramped(linear(), 9, fault)
    at_ease = train(roomy, examples, recipe, seed=1, compute=CPU)
    squeezed = train(cramped, examples, recipe, seed=1, compute=CPU)

    assert torch.allclose(parameters(cramped.inside), parameters(roomy), rtol=1e-5, atol=1e-6)
    assert squeezed["loss"] == pytest.approx(at_ease["loss"], rel=1e-5)
    in_training = cramped.seen[: 2 + 10 * 5]
    assert in_training[:3] == [30, 15, 7], "halved until it fits"
    assert max(in_training[3:]) == 7, "and kept for the rest of the run"


def test_memory_for_less_than_one_example_is_an_error() -> None:
    with pytest.raises(NotEnoughMemory, match="not even one example fits into memory: CUDA out of memory"):
        train(Cramped(linear(), 0, gpu_fault), points(60), STEADY, seed=1, compute=CPU)


def test_other_errors_are_not_taken_for_too_little_memory() -> None:
    def broken(rows: Tensor) -> None:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    module = Cramped(linear(), 0, broken)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        train(module, points(60), STEADY, seed=1, compute=CPU)
    assert len(module.seen) == 1


# Frozen parts


def test_frozen_norms_keep_their_statistics(training_set: Examples) -> None:
    kept, learned = Normed(), Normed()
    train(kept, training_set, replace(STEADY, freeze_norms=True), seed=1, compute=CPU)
    train(learned, training_set, STEADY, seed=1, compute=CPU)
    assert torch.equal(kept.get_buffer("layers.1.running_mean"), torch.zeros(8))
    assert not torch.equal(learned.get_buffer("layers.1.running_mean"), torch.zeros(8))


def test_parameters_that_need_no_gradient_stay_as_they_are() -> None:
    module = nn.Sequential(nn.Linear(8, 8).requires_grad_(False), nn.Linear(8, 3))
    before = copy.deepcopy(module.state_dict())
    train(module, points(60), STEADY, seed=1, compute=CPU)
    assert torch.equal(module.state_dict()["0.weight"], before["0.weight"])
    assert not torch.equal(module.state_dict()["1.weight"], before["1.weight"])


# Answers


def test_answers_are_in_the_order_of_the_rows_whatever_the_batch() -> None:
    module, rows = linear().eval(), points(50).rows
    at_once = logits(module, rows, compute=CPU)
    assert at_once.shape == (50, 3)
    np.testing.assert_allclose(logits(module, rows, compute=CPU, batch=7), at_once, atol=1e-6)
    with torch.inference_mode():
        np.testing.assert_allclose(at_once, module(torch.from_numpy(rows[:])).numpy(), atol=1e-6)


def test_no_row_gets_no_answer() -> None:
    assert logits(linear(), np.empty((0, 8), dtype=np.float32), compute=CPU).shape == (0, 3)


def test_answers_too_make_do_with_the_memory() -> None:
    module, rows = Cramped(linear(), 9, gpu_fault).eval(), points(50).rows
    answers = logits(module, rows, compute=CPU, batch=20)
    np.testing.assert_allclose(answers, logits(module.inside, rows, compute=CPU), atol=1e-6)
    assert module.seen == [20, 10, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5]


def test_nothing_learned_is_changed_by_asking() -> None:
    module = linear().train()
    logits(module, points(5).rows, compute=CPU)
    assert module.training
    assert all(parameter.requires_grad for parameter in module.parameters())
