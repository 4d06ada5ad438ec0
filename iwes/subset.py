"""Algorithm 1: select a weighted subset of a pool by rounds of training and drawing, with any kind of model."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from iwes.chance import Scaling
from iwes.draw import Draw, draw_seed
from iwes.errors import BadArgument, BadLabels
from iwes.probability import disagreement, entropy, loss, margin
from iwes.stream import draw

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Oracle = Callable[[Indices], ArrayLike]


class Model(Protocol):
    """What a model must be able to do; scikit-learn's classifiers with sample weights are of this kind."""

    def fit(self, x: Any, y: Indices, weight: Floats, /) -> object:
        """Train on x (n, …), class numbers y (n,) and one weight per example (n,).

        Where a parameter is called `sample_weight` the weights are passed by that name.
        """

    def predict_proba(self, x: Any, /) -> Any:
        """Class probabilities (n, classes); with an attribute `classes_`, columns for these classes only."""


@dataclass(frozen=True)
class Probability:
    """How likely a task is to be drawn: `score` gets each model's probabilities, and labels if it needs them."""

    score: Callable[[Sequence[Floats], Indices], Floats]
    models: int = 1
    needs_labels: bool = False


PROBABILITIES = {
    "entropy": Probability(lambda p, _: entropy(p[0])),
    "margin": Probability(lambda p, _: margin(p[0])),
    "loss": Probability(lambda p, y: loss(p[0], y), needs_labels=True),
    "disagreement": Probability(lambda p, y: disagreement(p[0], p[1], y), models=2, needs_labels=True),
}


@dataclass(frozen=True, eq=False)
class Subset:
    """The selected set, in the order of selection, arrays of shape (m,), and the model trained on all of it."""

    index: Indices
    label: Indices
    weight: Floats
    round: Indices  # 0 for the seed
    draws: tuple[Draw, ...]  # one per round, the seed first; a draw's `index` counts in what was left of the pool
    model: Model


def select_subset(
    pool: Any,
    train: Callable[[int], Model],
    probability: str | Probability,
    *,
    labels: ArrayLike | Oracle,
    k0: int,
    k: int,
    rounds: int,
    rng: np.random.Generator,
    classes: int | None = None,
    cap: float = 2.0,
    floor: float = 0.0,
    sharpness: float = 1.0,
    scaling: Scaling = "stream",
    batch: int = 4096,
) -> Subset:
    """Draw k0 tasks uniformly, then in each round train on all so far and draw k more; train once more at the end.

    `pool` holds the examples, anything that an index array selects from. `train` makes an untrained model from a
    seed; `probability` is "entropy", "margin", "disagreement", "loss" or a `Probability` of your own. `labels` are
    the class numbers (n,), or a function from indices to class numbers, asked only for selected tasks as long as
    the probability does not need labels; then give `classes`, too. The other options are those of `draw`; as they
    stand they are the paper's (no floor, weights capped at 2). The rounds end early when the pool is used up.
    """
    rule = PROBABILITIES.get(probability) if isinstance(probability, str) else probability
    if rule is None:
        raise BadArgument(f'probability is "{probability}": expected one of {", ".join(PROBABILITIES)}, or your own')
    if rounds < 0:
        raise BadArgument(f"rounds is {rounds}: expected 0 (the seed only) or more")
    ask, classes = _asker(labels, classes, len(pool))
    seed = draw_seed(len(pool), k0, rng=rng)
    draws = [seed]
    index, weight = [seed.index], [seed.weight]
    label = [ask(seed.index)]
    left = np.setdiff1d(np.arange(len(pool)), seed.index, assume_unique=True)
    for _ in range(rounds):
        if not len(left):
            break
        fitted = [
            _fit(train, pool, np.concatenate(index), np.concatenate(label), np.concatenate(weight), rng)
            for _ in range(rule.models)
        ]
        drawn = draw(
            _scorer(rule, fitted, pool, left, ask, classes),
            k,
            rng=rng,
            pool_size=len(left),
            floor=floor,
            cap=cap,
            sharpness=sharpness,
            scaling=scaling,
            batch=batch,
        )
        draws.append(drawn)
        index.append(left[drawn.index])
        weight.append(drawn.weight)
        label.append(ask(index[-1]))
        left = np.delete(left, drawn.index)
    all_index, all_label, all_weight = np.concatenate(index), np.concatenate(label), np.concatenate(weight)
    number = np.repeat(np.arange(len(draws)), [len(d) for d in draws])
    model = _fit(train, pool, all_index, all_label, all_weight, rng)
    return Subset(all_index, all_label, all_weight, number, tuple(draws), model)


def _fit(
    train: Callable[[int], Model], pool: Any, index: Indices, label: Indices, weight: Floats, rng: np.random.Generator
) -> Model:
    model = train(int(rng.integers(2**31)))
    if "sample_weight" in inspect.signature(model.fit).parameters:  # scikit-learn's name, in no fixed place
        fit: Any = model.fit
        fit(pool[index], label, sample_weight=weight)
    else:
        model.fit(pool[index], label, weight)
    return model


def _scorer(
    rule: Probability,
    models: Sequence[Model],
    pool: Any,
    left: Indices,
    ask: Callable[[Indices], Indices],
    classes: int,
) -> Callable[[Indices], Floats]:
    def score(places: Indices) -> Floats:
        tasks = left[places]
        examples = pool[tasks]
        beliefs = [all_classes(model, model.predict_proba(examples), classes) for model in models]
        return rule.score(beliefs, ask(tasks) if rule.needs_labels else tasks[:0])

    return score


def all_classes(model: Model, probabilities: ArrayLike, classes: int) -> Floats:
    """The probabilities with a column for every class, 0 for those the model has not met; shape (n, classes)."""
    matrix = np.asarray(probabilities, dtype=np.float64)
    met = getattr(model, "classes_", None)
    if met is None or matrix.shape[1] == classes:
        return matrix
    full = np.zeros((len(matrix), classes))
    full[:, np.asarray(met, dtype=np.int64)] = matrix
    return full


def _asker(labels: ArrayLike | Oracle, classes: int | None, size: int) -> tuple[Callable[[Indices], Indices], int]:
    if callable(labels):
        if classes is None:
            raise BadArgument("labels is a function: give classes, the number of classes")
        oracle = labels
        return (lambda index: _class_numbers(oracle(index), classes, len(index))), classes
    known = np.asarray(labels)
    count = classes if classes is not None else int(known.max(initial=0)) + 1
    known = _class_numbers(known, count, size)
    return (lambda index: np.asarray(known[index])), max(2, count)


def _class_numbers(labels: ArrayLike, classes: int, size: int) -> Indices:
    label = np.asarray(labels)
    if label.shape != (size,) or not np.issubdtype(label.dtype, np.integer):
        raise BadLabels(f"labels has shape {label.shape}, dtype {label.dtype}: expected class numbers, shape ({size},)")
    bad = np.flatnonzero((label < 0) | (label >= classes))
    if bad.size:
        raise BadLabels(f"labels[{bad[0]}] is {label[bad[0]]}: expected a class from 0 to {classes - 1}")
    return label.astype(np.int64)
