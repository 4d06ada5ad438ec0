"""Training is weighted, reproducible, stops by itself and says what is wrong with its input."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from models import networks, training
from models.convergence import LOW_ENOUGH
from models.training import Diverged, Progress, Trained, train, weighted_cross_entropy

Labelled = dict[str, Any]  # columns of the same length: images, labels, weights


def trained(data: Labelled, *, seed: int = 3, **options: Any) -> Trained:
    return train(**data, network="small-cnn", classes=3, seed=seed, device="cpu", **options)


def parameters(network: nn.Module) -> torch.Tensor:
    return torch.cat([tensor.flatten() for tensor in network.state_dict().values()])


def test_a_weight_counts_like_that_many_repeats() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(40, 5, dtype=torch.float64, generator=generator)
    labels = torch.randint(0, 5, (40,), generator=generator)
    repeats = torch.randint(1, 5, (40,), generator=generator)

    weighted = weighted_cross_entropy(logits, labels, repeats.double())
    repeated = nn.functional.cross_entropy(logits.repeat_interleave(repeats, 0), labels.repeat_interleave(repeats))

    assert weighted.item() == pytest.approx(repeated.item(), rel=1e-14)


def test_a_weight_pulls_on_the_network_like_that_many_repeats(unseen: Labelled) -> None:
    torch.manual_seed(0)
    network = networks.build("small-cnn", classes=3).eval()  # without dropout, which is random per repeat
    twin = copy.deepcopy(network)
    images, labels = torch.from_numpy(unseen["images"][:24]), torch.from_numpy(unseen["labels"][:24])
    repeats = torch.arange(24) % 4 + 1

    weighted_cross_entropy(network(images), labels, repeats.float()).backward()  # type: ignore[no-untyped-call]
    repeated = twin(images.repeat_interleave(repeats, 0))
    nn.functional.cross_entropy(repeated, labels.repeat_interleave(repeats)).backward()  # type: ignore[no-untyped-call]

    for ours, theirs in zip(network.parameters(), twin.parameters(), strict=True):
        assert ours.grad is not None
        assert theirs.grad is not None
        assert torch.allclose(ours.grad, theirs.grad, rtol=1e-4, atol=1e-6)


def test_contradicting_labels_are_settled_by_their_weights() -> None:
    """The same grey image, labelled 0 with weight 3 and 1 with weight 1: P(0) must come out near 3/4."""
    images = np.full((60, 3, 28, 28), 99, dtype=np.uint8)
    labels = np.arange(60, dtype=np.int64) % 2
    weights = np.where(labels == 0, 3, 1).astype(np.float32)

    network = train(images, labels, weights, network="small-cnn", classes=2, seed=1, device="cpu").network

    with torch.inference_mode():
        probability = network(torch.from_numpy(images[:1])).softmax(dim=1)[0, 0].item()
    assert probability == pytest.approx(0.75, abs=0.08)


def test_only_the_ratios_of_weights_count(training_set: Labelled) -> None:
    doubled = training_set | {"weights": training_set["weights"] * 2}
    assert torch.equal(parameters(trained(training_set).network), parameters(trained(doubled).network))


def test_the_same_seed_gives_the_same_network_whatever_was_drawn_before(training_set: Labelled) -> None:
    torch.manual_seed(1)
    first = trained(training_set)
    torch.manual_seed(2)
    second = trained(training_set)
    assert torch.equal(parameters(first.network), parameters(second.network))


def test_another_seed_gives_another_network(training_set: Labelled) -> None:
    one, other = trained(training_set, seed=3), trained(training_set, seed=4)
    assert not torch.equal(parameters(one.network), parameters(other.network))


def test_the_global_random_state_is_left_alone(training_set: Labelled, monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_rng_state()
    trained(training_set)
    assert torch.equal(torch.get_rng_state(), before)
    monkeypatch.setattr(training, "LEARNING_RATE", 1e30)
    with pytest.raises(Diverged):
        trained(training_set)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_number_of_threads_is_given_back_and_does_not_change_the_network(training_set: Labelled) -> None:
    before = torch.get_num_threads()
    networks_by_threads = {}
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            networks_by_threads[threads] = parameters(trained(training_set).network)
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert torch.equal(networks_by_threads[1], networks_by_threads[2])


def test_it_learns_and_stops_before_the_cap(training_set: Labelled, unseen: Labelled) -> None:
    result = trained(training_set)

    assert result.metrics["epochs"] < training.EPOCHS_AT_MOST
    assert result.metrics["accuracy"] == 1.0
    assert result.metrics["loss"] < LOW_ENOUGH
    assert result.metrics["seconds"] > 0
    assert not result.network.training
    with torch.inference_mode():
        answers = result.network(torch.from_numpy(unseen["images"])).argmax(dim=1).numpy()
    assert (answers == unseen["labels"]).mean() > 0.98


def test_labels_that_cannot_be_learned_stop_by_patience(training_set: Labelled) -> None:
    same = np.full_like(training_set["images"], 50)
    result = trained(training_set | {"images": same})
    assert result.metrics["epochs"] < training.EPOCHS_AT_MOST
    assert result.metrics["loss"] == pytest.approx(math.log(3), abs=0.1)


def test_the_cap_ends_a_run_that_does_not_converge(training_set: Labelled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "EPOCHS_AT_MOST", 2)
    assert trained(training_set).metrics["epochs"] == 2


def test_a_single_label_can_be_trained_on(training_set: Labelled) -> None:
    one = {name: column[:1] for name, column in training_set.items()}
    assert trained(one).metrics["accuracy"] == 1.0


def test_progress_is_told_after_every_epoch(training_set: Labelled) -> None:
    seen: list[Progress] = []
    result = trained(training_set, on_progress=seen.append)

    assert [progress.epoch for progress in seen] == list(range(1, int(result.metrics["epochs"]) + 1))
    assert {progress.of for progress in seen} == {training.EPOCHS_AT_MOST}
    assert seen[-1].loss < LOW_ENOUGH < seen[0].loss
    assert seen[-1].accuracy > seen[0].accuracy
    assert all(progress.seconds_left > 0 for progress in seen)


def test_a_diverged_run_gives_no_network(training_set: Labelled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "LEARNING_RATE", 1e30)
    with pytest.raises(Diverged, match="diverged"):
        trained(training_set)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("images", np.zeros((48, 28, 28, 3), dtype=np.uint8), r"images must be uint8 of shape \(n, 3, 28, 28\)"),
        ("images", np.zeros((48, 3, 28, 28), dtype=np.float32), "images must be uint8 .* not float32"),
        ("images", np.zeros((47, 3, 28, 28), dtype=np.uint8), "47 images need as many labels and weights"),
        ("images", np.zeros((0, 3, 28, 28), dtype=np.uint8), "no labelled image"),
        ("labels", np.zeros(47, dtype=np.int64), "48 images need as many labels"),
        ("labels", np.array([0] * 47 + [3]), r"labels must be 0 … 2: example 47 has 3"),
        ("labels", np.array([-1] + [0] * 47), r"example 0 has -1"),
        ("labels", np.zeros(48), "labels must be class numbers"),
        ("weights", np.ones(49, dtype=np.float32), "as many labels and weights"),
        ("weights", np.array([1.0] * 40 + [0.0] * 8, dtype=np.float32), "weights must be .* example 40 has 0.0"),
        ("weights", np.array([1.0, -2.0] * 24, dtype=np.float32), "example 1 has -2.0"),
        ("weights", np.array([np.nan] * 48, dtype=np.float32), "example 0 has nan"),
        ("weights", np.array([np.inf] * 48, dtype=np.float32), "example 0 has inf"),
    ],
)
def test_input_that_does_not_fit_is_named(
    training_set: Labelled, column: str, value: np.ndarray[Any, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        trained(training_set | {column: value})
