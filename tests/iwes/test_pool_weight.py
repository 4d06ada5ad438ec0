"""Weights by which the labels of several rounds stand for the whole pool, on a pool whose truth is known."""

import numpy as np
import pytest

import iwes

POOL, RARE, K, ROUNDS, RUNS = 1000, 200, 40, 3, 120


def estimates(seed: int) -> tuple[float, float]:
    """The size of the pool, and of its rare class, by one run: a seed and three draws, the last half answered."""
    rng = np.random.default_rng(seed)
    rare = np.arange(POOL) < RARE
    score = np.clip(np.random.default_rng(7).random(POOL) * 0.5 + 0.3 * rare, 0.05, 1.0)
    left, batches, rows = np.arange(POOL), [], []
    for number in range(ROUNDS):
        if number == 0:
            drawn = iwes.draw_seed(len(left), K, rng=rng, reserve=0.5)
        else:
            here = left
            drawn = iwes.draw(lambda places: score[here[places]], K, rng=rng, pool_size=len(left), reserve=0.5)  # noqa: B023
        answered = K // 2 if number == ROUNDS - 1 else len(drawn)
        batches.append((drawn.batch_size, min(answered, drawn.batch_size), drawn.examined, drawn.pool_size))
        rows += [
            (left[index], number, pi, rank < drawn.batch_size)
            for rank, (index, pi) in enumerate(zip(drawn.index, drawn.inclusion, strict=True))
            if rank < answered
        ]
        left = np.setdiff1d(left, left[drawn.index])
    weights = iwes.PoolWeights(*zip(*batches, strict=True))
    w = np.array([weights.drawn(n, pi) if in_batch else weights.known[n + 1] for _, n, pi, in_batch in rows])
    return float(w.sum()), float(w @ rare[[row[0] for row in rows]])


def test_the_weights_of_many_rounds_sum_to_the_pool_and_to_each_class_on_average() -> None:
    found = np.array([estimates(seed) for seed in range(RUNS)])
    error = found.std(axis=0) / np.sqrt(RUNS)
    assert abs(found[:, 0].mean() - POOL) < 3 * error[0]
    assert abs(found[:, 1].mean() - RARE) < 3 * error[1]


def test_one_round_of_the_whole_pool_weighs_by_inclusion_alone() -> None:
    weights = iwes.PoolWeights([4], [4], [10], [10])
    assert weights.drawn([0, 0], [0.5, 0.25]).tolist() == [2.0, 4.0]
    assert weights.known.tolist() == [1.0, 0.0]


def test_labels_stand_for_themselves_where_no_round_has_an_answer() -> None:
    assert iwes.PoolWeights([4], [0], [10], [10]).known.tolist() == [1.0, 1.0]


def test_more_answers_than_draws_are_refused() -> None:
    with pytest.raises(iwes.BadArgument, match="round 1: 5 answered of 4 drawn"):
        iwes.PoolWeights([4, 4], [4, 5], [10, 10], [10, 10])
