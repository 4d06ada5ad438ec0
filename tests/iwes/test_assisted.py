"""Estimates that a model helps with: by hand, with the best and the worst of models, and over many draws."""

from collections.abc import Callable

import numpy as np
import pytest

from iwes import BadArgument, BadLabels, assisted_balance, assisted_mean, draw, estimate_mean


def test_by_hand() -> None:
    result = assisted_mean([1, 0, 1], [0.5, 0.25, 1.0], [0.9, 0.4, 0.8], 0.7)
    assert result.value == pytest.approx(0.7 + (2 * 0.1 - 4 * 0.4 + 1 * 0.2) / 7)


def test_the_doubt_of_a_mean_by_hand() -> None:
    """Two labels are added to those there are: one that is wholly less than expected, with the weight of those that are
    less, and one that is half more, with that of those that are more; of both, two of the weight that matters."""
    v, w, m = np.array([1, 0, 1]), np.array([2, 4, 1]), np.array([0.9, 0.4, 0.8])
    result = assisted_mean(v, 1 / w, m, 0.7)
    heavy = (w**3).sum() / (w**2).sum()
    less = (0.4 * 4 + 2 * heavy) / (0.4 + 2)
    more = (0.3 * (8 * 0.1 + 1 * 0.2) / (4 * 0.1 + 1 * 0.2) + 2 * heavy) / (0.3 + 2)
    weight, off = np.array([*w, less, more]), np.array([*(v - m), -1, 0.5])
    mean_off = (weight @ off) / weight.sum()
    variance = ((weight**2 - weight) * (off - mean_off) ** 2).sum() / weight.sum() ** 2
    assert result.standard_error == pytest.approx(np.sqrt(variance))


def test_the_doubt_of_a_class_by_hand() -> None:
    """Two labels of the median weight, 2, by which the model is half off either way, are added to those there are."""
    beliefs = np.array([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2]])
    result = assisted_balance([0, 1, 0], [0.5, 0.25, 1.0], beliefs, [0.7, 0.3])[0]
    w, e = np.array([2, 4, 1, 2, 2]), np.array([0.1, -0.4, 0.2, -0.5, 0.5])
    variance = ((w**2 - w) * (e - (w @ e) / 11) ** 2).sum() / 11**2
    assert result.standard_error == pytest.approx(np.sqrt(variance))


def test_a_model_that_knows_everything_leaves_less_doubt_than_labels_alone_and_none_where_all_was_drawn() -> None:
    rng = np.random.default_rng(0)
    pi, v = rng.uniform(0.05, 0.5, 200), (rng.random(200) < 0.7).astype(float)
    alone = estimate_mean(v, pi)
    helped = assisted_mean(v, pi, v, alone.value)
    assert helped.value == pytest.approx(alone.value)
    assert helped.high - helped.low < 0.5 * (alone.high - alone.low)
    everything = assisted_mean(v, np.ones(200), v, v.mean())
    assert everything.low == everything.value == everything.high == pytest.approx(v.mean())


def test_a_model_that_expects_the_same_of_every_task_changes_nothing() -> None:
    v, pi = [1, 0, 1, 1, 0], [0.1, 0.9, 0.2, 0.5, 0.3]
    assert assisted_mean(v, pi, np.full(5, 0.4), 0.4).value == pytest.approx(estimate_mean(v, pi).value)


def test_bounds_are_shares() -> None:
    result = assisted_mean([1, 0, 1, 1], [0.1, 0.9, 0.2, 0.5], [0.1, 0.5, 0.2, 0.3], 0.9)
    assert 0 <= result.low <= result.value <= result.high <= 1


def test_whoever_asks_the_model_about_more_tasks_than_were_examined_knows_more() -> None:
    rng = np.random.default_rng(0)
    pi, v = rng.uniform(0.05, 0.5, 200), (rng.random(200) < 0.7).astype(float)
    m = np.abs(v - 0.2)
    little, more, all_ = (
        assisted_mean(v, pi, m, 0.6, examined=800, pool_size=5_000, asked_about=count) for count in (800, 2_000, 5_000)
    )
    assert little == assisted_mean(v, pi, m, 0.6, examined=800, pool_size=5_000)
    assert little.standard_error > more.standard_error > all_.standard_error


@pytest.mark.parametrize("wrong_by", [0.0, 0.3])
def test_over_many_draws_it_is_right_and_its_interval_covers(wrong_by: float, make_pool: Callable) -> None:
    """Also with the help of a model that is far too sure of itself; where it is right about itself, closer than without
    help."""
    size, k = 5_000, 200
    score, right = make_pool(size, 0.2, 0.8, "proportional")
    chance_of_right = np.clip(1 - (1 - right.mean()) * score / score.mean(), 0, 1)
    expected = np.clip(chance_of_right + wrong_by * (1 - chance_of_right), 0, 1)
    rng, truth = np.random.default_rng(5), right.mean()
    helped, alone, hits = [], [], 0
    for _ in range(400):
        found = draw(score, k, rng=rng)
        v, seen = right[found.index], {"examined": found.examined, "pool_size": size}
        one = assisted_mean(v, found.inclusion, expected[found.index], float(expected.mean()), **seen)
        hits += one.low <= truth <= one.high
        helped.append(one.value - truth)
        alone.append(estimate_mean(v, found.inclusion, **seen).value - truth)
    assert abs(np.mean(helped)) < 4 * np.std(helped) / np.sqrt(400) + 1 / k
    assert hits / 400 > 0.92
    assert np.std(helped) < np.std(alone)


@pytest.mark.parametrize("skipped", [0.05, 0.2])
def test_tasks_that_nobody_can_answer_mislead_nobody(skipped: float, make_pool: Callable) -> None:
    """The model is unsure of them, and was asked about them as about all others; the mean is that of the others."""
    size, k = 5_000, 100
    score, right = make_pool(size, 0.2, 0.8, "proportional")
    rng = np.random.default_rng(6)
    shown = rng.random(size) >= skipped
    score = np.where(shown, score, np.maximum(score, 0.6))
    expected = np.where(shown, np.clip(1 - (1 - right.mean()) * score / score.mean(), 0, 1), 0.4)
    truth, off, hits, classes = right[shown].mean(), [], 0, []
    for _ in range(400):
        found = draw(np.maximum(score, 0.05), k, rng=rng)
        some, pi = found.index, found.inclusion
        seen = {"within": shown[some], "examined": found.examined, "pool_size": size}
        v = np.where(shown[some], right[some], np.nan)
        one = assisted_mean(v, pi, expected[some], float(expected.mean()), **seen)
        hits += one.low <= truth <= one.high
        off.append(one.value - truth)
        beliefs, label = np.stack([expected, 1 - expected], axis=1), np.where(shown, right == 0, -1).astype(int)
        classes.append(assisted_balance(label[some], pi, beliefs[some], beliefs.mean(axis=0), **seen)[0].value - truth)
    assert abs(np.mean(off)) < 4 * np.std(off) / np.sqrt(400) + 1 / k
    assert abs(np.mean(classes)) < 4 * np.std(classes) / np.sqrt(400) + 1 / k
    assert hits / 400 > 0.92


def test_a_task_without_an_answer_by_hand() -> None:
    """The mean is that of the two answered ones, with what the model expects of all beyond what it expected of the
    three that were drawn."""
    result = assisted_mean([1, 0, 9], [0.5, 0.25, 1.0], [0.9, 0.4, 0.8], 0.7, within=[True, True, False])
    assert result.value == pytest.approx(2 / 6 + 0.7 - (2 * 0.9 + 4 * 0.4 + 1 * 0.8) / 7)
    assert result.effective_size == pytest.approx(6**2 / (2**2 + 4**2))


def test_balance_takes_each_class_by_itself() -> None:
    labels, pi = [0, 1, 2, 1], [0.5, 0.25, 1.0, 0.5]
    beliefs = np.array([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8], [0.5, 0.5, 0.0]])
    pool = np.array([0.5, 0.3, 0.2])
    shares = assisted_balance(labels, pi, beliefs, pool)
    assert sum(share.value for share in shares) == pytest.approx(1)
    alone = assisted_mean(np.array(labels) == 1, pi, beliefs[:, 1], 0.3)
    assert shares[1].value == pytest.approx(alone.value)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: assisted_mean([1, 0], [0.5, 0.5], [0.2], 0.5), BadArgument, "expected has shape"),
        (lambda: assisted_mean([1, 0], [0.5, 0.5], [0.2, np.nan], 0.5), BadArgument, "expected"),
        (lambda: assisted_mean([1, 0], [0.5, 0.5], [0.2, 0.1], 0.5, within=[False] * 2), BadArgument, "0 of them true"),
        (lambda: assisted_mean([1, 0], [0.5, 0.5], [0.2, 0.1], np.inf), BadArgument, "expected_of_pool is inf"),
        (lambda: assisted_balance([0, 2], [0.5, 0.5], np.ones((2, 2)) / 2, [0.5, 0.5]), BadLabels, r"labels\[1\] is 2"),
        (lambda: assisted_balance([0, 1], [0.5, 0.5], np.ones((2, 2)) / 2, [1.0]), BadArgument, "beliefs_of_pool"),
    ],
)
def test_bad_input_is_named(call: Callable, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
