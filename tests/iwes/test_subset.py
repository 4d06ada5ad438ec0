"""Subset selection with scikit-learn and torch models alike."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier

from iwes import BadArgument, BadLabels, EmptyPool, Probability, entropy, select_subset

X, Y = load_digits(return_X_y=True)
X = X / 16.0


class Softmax:
    """A small torch model behind the same two methods."""

    def __init__(self, seed: int) -> None:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.net = torch.nn.Linear(64, 10)

    def fit(self, x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> None:
        inputs, target = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
        scale = torch.tensor(weight, dtype=torch.float32)
        for _ in range(60):
            each = torch.nn.functional.cross_entropy(self.net(inputs), target, reduction="none")
            parameters = list(self.net.parameters())
            steps = torch.autograd.grad((each * scale).mean(), parameters)
            with torch.no_grad():
                for parameter, step in zip(parameters, steps, strict=True):
                    parameter -= 0.5 * step

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return torch.softmax(self.net(torch.tensor(x, dtype=torch.float32)), dim=1).numpy()


def linear(seed: int) -> SGDClassifier:
    return SGDClassifier(loss="log_loss", alpha=0.001, max_iter=20, tol=None, random_state=seed)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny matrices are faster on one core, most of all next to other work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("train", [linear, Softmax], ids=["scikit-learn", "torch"])
@pytest.mark.parametrize("rule", ["entropy", "margin", "disagreement", "loss"])
def test_rounds_add_up_without_repeats_and_weights_are_capped(train: object, rule: str) -> None:
    result = select_subset(X, train, rule, labels=Y, k0=30, k=40, rounds=3, cap=1.5, rng=np.random.default_rng(0))
    assert len(np.unique(result.index)) == 150
    np.testing.assert_array_equal(result.label, Y[result.index])
    assert np.bincount(result.round).tolist() == [30, 40, 40, 40]
    assert result.weight[:30].tolist() == [1.0] * 30
    assert result.weight[30:].max() <= 1.5
    if rule in ("disagreement", "loss"):
        assert result.weight[30:].tolist() == [1.5] * 120
    accuracy = (result.model.predict_proba(X).argmax(axis=1) == Y).mean()
    assert accuracy > 0.75


def test_same_seed_gives_the_same_subset_whatever_the_batch_size() -> None:
    one, other = (
        select_subset(X, linear, "entropy", labels=Y, k0=30, k=40, rounds=2, batch=batch, rng=np.random.default_rng(4))
        for batch in (16, 5000)
    )
    np.testing.assert_array_equal(one.index, other.index)
    # not to the last digit: on some processors a matrix product of other shape, the model's own, rounds otherwise
    np.testing.assert_allclose(one.weight, other.weight, rtol=1e-6)


def test_oracle_is_asked_only_for_selected_tasks() -> None:
    asked: list[int] = []

    def oracle(index: np.ndarray) -> np.ndarray:
        asked.extend(index.tolist())
        return Y[index]

    result = select_subset(
        X, linear, "entropy", labels=oracle, classes=10, k0=30, k=40, rounds=2, rng=np.random.default_rng(0)
    )
    assert asked == result.index.tolist()


def test_class_the_seed_did_not_meet_gets_probability_zero() -> None:
    order = np.argsort(Y, kind="stable")
    x, y = X[order], Y[order]
    result = select_subset(
        x[:400],
        lambda seed: LogisticRegression(random_state=seed),
        "entropy",
        labels=y[:400],
        classes=10,
        k0=10,
        k=20,
        rounds=2,
        rng=np.random.default_rng(0),
    )
    assert len(result.index) == 50
    assert np.all(result.draws[1].score < np.log(3) / np.log(10) + 1e-9)


def test_rounds_end_with_the_pool() -> None:
    result = select_subset(
        X[:100], linear, "entropy", labels=Y[:100], k0=30, k=40, rounds=9, rng=np.random.default_rng(0)
    )
    assert sorted(result.index) == list(range(100))
    assert np.bincount(result.round).tolist() == [30, 40, 30]


def test_probability_of_ones_own_and_another_family_of_models() -> None:
    squared = Probability(lambda p, _: entropy(p[0]) ** 2)
    result = select_subset(
        X[:600],
        lambda seed: RandomForestClassifier(10, random_state=seed),
        squared,
        labels=Y[:600],
        k0=30,
        k=20,
        rounds=1,
        floor=0.05,
        rng=np.random.default_rng(0),
    )
    assert len(result.index) == 50


def test_bad_input_is_named() -> None:
    options = {"labels": Y, "k0": 30, "k": 40, "rounds": 1, "rng": np.random.default_rng(0)}
    with pytest.raises(BadArgument, match='probability is "guess"'):
        select_subset(X, linear, "guess", **options)
    with pytest.raises(BadArgument, match="give classes"):
        select_subset(X, linear, "entropy", **(options | {"labels": lambda index: Y[index]}))
    with pytest.raises(BadLabels, match=r"labels\[3\] is -1"):
        select_subset(X, linear, "entropy", **(options | {"labels": np.where(np.arange(len(Y)) == 3, -1, Y)}))
    with pytest.raises(BadArgument, match="rounds is -1"):
        select_subset(X, linear, "entropy", **(options | {"rounds": -1}))
    with pytest.raises(EmptyPool):
        select_subset(X[:0], linear, "entropy", **(options | {"labels": Y[:0]}))
