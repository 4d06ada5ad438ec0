"""The draw: same seed same tasks, however it is computed, and a clear end for every pool."""

import numpy as np
import pytest

from iwes import (
    BadArgument,
    BadScore,
    Draw,
    EmptyPool,
    ZeroScores,
    asked_first,
    binary_entropy,
    draw,
    draw_seed,
    stream,
)

ARRAYS = ("index", "position", "passes", "score", "probability", "weight", "inclusion")


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def assert_same(one: Draw, other: Draw) -> None:
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert (one.examined, one.batch_size, one.pool_size) == (other.examined, other.batch_size, other.pool_size)


@pytest.mark.parametrize(("n", "k"), [(3000, 40), (3000, 1500), (60, 50)])
@pytest.mark.parametrize("scaling", ["stream", "pool"])
def test_batch_size_and_shards_leave_no_trace_in_the_draw(n: int, k: int, scaling: str) -> None:
    score = rng(1).beta(0.4, 2.0, n)
    eager = draw(score, k, rng=rng(7), reserve=0.5, scaling=scaling)

    def sharded(index: np.ndarray) -> np.ndarray:
        return np.concatenate([score[part] for part in np.array_split(index, 3)])

    for batch in (1, 7, 256, 10_000):
        assert_same(
            eager, draw(score.__getitem__, k, rng=rng(7), reserve=0.5, scaling=scaling, pool_size=n, batch=batch)
        )
        assert_same(eager, draw(sharded, k, rng=rng(7), reserve=0.5, scaling=scaling, pool_size=n, batch=batch))


def test_lazy_draw_asks_in_order_never_twice_and_not_beyond_its_last_block() -> None:
    score = rng(1).beta(0.4, 2.0, 100_000)
    asked: list[np.ndarray] = []

    def scorer(index: np.ndarray) -> np.ndarray:
        asked.append(index.copy())
        return score[index]

    result = draw(scorer, 100, rng=rng(3), pool_size=len(score), batch=64)
    order = np.concatenate(asked)
    assert len(np.unique(order)) == len(order)
    assert all(len(part) <= 64 for part in asked)
    assert result.position[-1] + 1 <= len(order) < result.position[-1] + 1 + 64
    np.testing.assert_array_equal(order[result.position], result.index)
    assert len(order) < 3000


@pytest.mark.parametrize("pool_size", [40, 30_000])
def test_what_is_asked_first_is_known_before_any_score(pool_size: int) -> None:
    asked: list[int] = []

    def score(index: np.ndarray) -> np.ndarray:
        asked.extend(index.tolist())
        return np.full(len(index), 0.1)

    known = asked_first(pool_size, 60, rng=np.random.default_rng(5)).tolist()
    draw(score, 20, rng=np.random.default_rng(5), pool_size=pool_size, batch=60)
    assert known == asked[:60]
    assert len(known) == min(60, pool_size)
    with pytest.raises(EmptyPool):
        asked_first(0, 60, rng=np.random.default_rng(5))


def test_later_passes_never_ask_for_a_score_again() -> None:
    score = np.full(500, 0.1)
    count = np.zeros(500, dtype=int)

    def scorer(index: np.ndarray) -> np.ndarray:
        count[index] += 1
        return score[index]

    result = draw(scorer, 400, rng=rng(3), pool_size=500, batch=32)
    assert result.passes.max() > 3
    assert count.tolist() == [1] * 500


def test_batch_does_not_depend_on_the_reserve_and_the_reserve_follows_it() -> None:
    score = rng(1).beta(0.4, 2.0, 2000)
    small, large = draw(score, 300, rng=rng(5)), draw(score, 300, rng=rng(5), reserve=0.5)
    assert (len(small), len(large), large.batch_size) == (300, 450, 300)
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(small, name), getattr(large, name)[:300], err_msg=name)
    assert small.examined == large.examined
    assert len(np.unique(large.index)) == 450


def test_next_draw_of_the_same_generator_does_not_depend_on_the_batch_size() -> None:
    score = rng(1).beta(0.4, 2.0, 2000)
    one, other = rng(5), rng(5)
    draw(score.__getitem__, 50, rng=one, pool_size=2000, batch=3)
    draw(score, 50, rng=other, reserve=1.0)
    assert_same(draw(score, 50, rng=one), draw(score, 50, rng=other))


@pytest.mark.parametrize("n", [1, 5, 49, 50])
@pytest.mark.parametrize("floor", [0.0, 0.05])
def test_pool_of_k_or_fewer_is_returned_whole(n: int, floor: float) -> None:
    score = rng(2).random(n)
    score[0] = 0.0
    result = draw(score, 50, rng=rng(1), floor=floor, reserve=0.5)
    assert sorted(result.index) == list(range(n))
    assert result.batch_size == n
    assert result.inclusion.tolist() == [1.0] * n
    assert np.all((result.probability > 0) & (result.probability <= 1))
    assert np.all((result.weight >= 1) & (result.weight <= 2))


def test_reserve_of_a_nearly_empty_pool_is_what_is_left() -> None:
    result = draw(rng(2).random(60), 50, rng=rng(1), reserve=0.5)
    assert sorted(result.index) == list(range(60))
    assert result.batch_size == 50


def test_empty_pool_is_a_named_error() -> None:
    with pytest.raises(EmptyPool, match="import more tasks"):
        draw(np.empty(0), 5, rng=rng())
    with pytest.raises(EmptyPool):
        draw_seed(0, 5, rng=rng())


def test_scores_of_zero_end_with_a_named_error_without_a_floor_and_with_a_draw_with_one() -> None:
    score = np.zeros(1000)
    score[:3] = 0.5
    with pytest.raises(ZeroScores, match="3 of 1000 tasks have a score above zero but k is 10"):
        draw(score, 10, rng=rng(), floor=0.0)
    with pytest.raises(ZeroScores):
        draw(np.full(1000, 1e-300), 10, rng=rng(), floor=0.0)
    assert len(draw(score, 10, rng=rng())) == 10
    short = draw(score, 2, rng=rng(), floor=0.0, reserve=5.0)
    assert sorted(short.index) == [0, 1, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k is 0"),
        ({"floor": -0.1}, "floor is -0.1"),
        ({"cap": 0.5}, "cap is 0.5"),
        ({"reserve": -1.0}, "reserve is -1.0"),
        ({"sharpness": 0.0}, "sharpness is 0.0"),
        ({"scaling": "both"}, 'scaling is "both"'),
        ({"batch": 0}, "batch is 0"),
        ({"pool_size": 3}, "pool_size is 3"),
    ],
)
def test_bad_option_is_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(BadArgument, match=message):
        draw(np.full(10, 0.5), **({"k": 5, "rng": rng()} | options))


@pytest.mark.parametrize("value", [np.nan, -0.1, np.inf, 1.5])
def test_bad_score_names_its_task(value: float) -> None:
    score = np.full(100, 0.5)
    score[37] = value
    with pytest.raises(BadScore, match="task 37 is"):
        draw(score, 5, rng=rng())
    with pytest.raises(BadScore, match="task 37 is"):
        draw(score.__getitem__, 90, rng=rng(), pool_size=100)


def test_score_function_must_return_one_score_per_task_and_needs_the_pool_size() -> None:
    with pytest.raises(BadScore, match="one score per task"):
        draw(lambda index: np.ones((len(index), 2)), 5, rng=rng(), pool_size=100)
    with pytest.raises(BadArgument, match="give pool_size"):
        draw(lambda index: np.ones(len(index)), 5, rng=rng())


def test_pool_scaled_probabilities_sum_to_k() -> None:
    score = rng(4).gamma(0.5, 3.0, 5000)
    result = draw(score, 400, rng=rng(1), scaling="pool", floor=0.0)
    first = result.passes == 0
    factor = (result.probability / score[result.index])[first & (result.probability < 1)]
    np.testing.assert_allclose(factor, factor[0])
    np.testing.assert_allclose(np.minimum(1, factor[0] * score).sum(), 400)


def test_multi_label_tasks_get_one_coin_per_image_class_pair() -> None:
    """Pairs are drawn like tasks; of an image some classes may be asked for and others not."""
    p = rng(1).beta(0.3, 0.3, (400, 5))
    pairs = binary_entropy(p)
    result = draw(pairs.ravel(), 300, rng=rng(2), floor=0.0, cap=10.0)
    image, number = np.divmod(result.index, 5)
    np.testing.assert_array_equal(result.score, pairs[image, number])
    assert len(np.unique(result.index)) == 300
    assert 150 < len(np.unique(image)) < 300
    assert result.weight.max() <= 10.0


def test_many_tiny_chances_are_not_taken_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scaled to a large pool every probability is tiny; that is no reason to give up after an unlucky pass."""
    monkeypatch.setattr(stream, "CERTAIN", 0.01)
    draws = [draw(np.ones(1000), 3, rng=rng(seed), scaling="pool") for seed in range(50)]
    assert {len(d) for d in draws} == {3}
    assert max(d.passes.max() for d in draws) > 0


def test_seed_is_uniform_without_repeats_with_weight_one() -> None:
    result = draw_seed(1000, 50, rng=rng(1), reserve=0.5)
    assert len(np.unique(result.index)) == len(result) == 75
    assert result.batch_size == 50
    assert result.inclusion[:50].tolist() == result.probability[:50].tolist() == [0.05] * 50
    assert result.inclusion[50:].tolist() == [0.075] * 25
    assert result.weight.tolist() == [1.0] * 75
    assert np.isnan(result.score).all()
    hits = sum(np.bincount(draw_seed(20, 5, rng=rng(s)).index, minlength=20) for s in range(4000))
    assert abs(hits / 4000 - 0.25).max() < 0.03


def test_seed_of_a_small_pool_is_all_of_it() -> None:
    result = draw_seed(7, 50, rng=rng(1), reserve=0.5)
    assert sorted(result.index) == list(range(7))
    assert result.inclusion.tolist() == [1.0] * 7
