"""Paper mode against a slow, literal transcription of Algorithm 1, coin for coin."""

import copy

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier

from iwes import draw, select_subset
from iwes.draw import child_rng
from iwes.order import RandomOrder


def literal_round(
    pool: list[int], score: dict[int, float], k: int, cap: float, rng: np.random.Generator
) -> list[tuple]:
    """One round, word for word: pass over the pool in random order, toss, accept, rescale, until k are accepted.

    The random order and the coins come from the generators that `draw` would use; nothing else is shared.
    """
    order_rng, coin_rng = child_rng(rng), child_rng(rng)
    order = RandomOrder(len(pool), order_rng).take(0, len(pool)).tolist()
    stream = [(position, pool[place]) for position, place in enumerate(order)]
    selected: list[tuple] = []
    coins: dict[int, list[float]] = {x: [] for x in pool}
    j = 0
    stopped = False
    while not stopped:
        for position, x in list(stream):
            p = min(1.0, score[x] * (1 + j / 10))
            coins[x].append(p)
            if coin_rng.random() < p:
                selected.append((x, position, j, p, min(1 / p, cap)))
                stream.remove((position, x))
            if len(selected) == k:
                stopped = True
                break
        else:
            j += 1
    # Those accepted earlier would have been tossed further coins: their passes are those of their neighbours.
    last_position, last_pass = selected[-1][1], selected[-1][2]
    result = []
    for x, position, passes, p, weight in selected:
        miss = 1.0
        for q in range(last_pass + (1 if position <= last_position else 0)):
            miss *= 1 - min(1.0, score[x] * (1 + q / 10))
        result.append((x, position, passes, p, weight, 1 - miss))
    return result


@pytest.mark.parametrize(
    ("n", "k", "mean", "cap"), [(300, 20, 0.3, 2.0), (300, 150, 0.1, 1.5), (500, 40, 0.02, 10.0), (60, 59, 0.3, 2.0)]
)
@pytest.mark.parametrize("seed", range(5))
def test_draw_equals_the_literal_algorithm(n: int, k: int, mean: float, cap: float, seed: int) -> None:
    score = np.random.default_rng(seed).beta(2 * mean, 2 * (1 - mean), n)
    score = np.maximum(score, 1e-3)  # without a floor, a task of score 0 would be waited for endlessly
    rng = np.random.default_rng(100 + seed)
    expected = literal_round(list(range(n)), dict(enumerate(score.tolist())), k, cap, copy.deepcopy(rng))
    result = draw(score, k, rng=rng, floor=0.0, cap=cap)
    index, position, passes, probability, weight, inclusion = zip(*expected, strict=True)
    assert result.index.tolist() == list(index)
    assert result.position.tolist() == list(position)
    assert result.passes.tolist() == list(passes)
    assert result.probability.tolist() == list(probability)
    assert result.weight.tolist() == list(weight)
    np.testing.assert_allclose(result.inclusion, inclusion, rtol=1e-9)


def model_of(seed: int) -> SGDClassifier:
    """A model that its seed makes a difference to, as IWeS-dis needs."""
    return SGDClassifier(loss="log_loss", alpha=0.01, max_iter=20, tol=None, random_state=seed)


def literal_algorithm(
    x: np.ndarray, y: np.ndarray, rule: str, k0: int, k: int, rounds: int, cap: float, rng: np.random.Generator
) -> tuple[list[int], list[float]]:
    """Algorithm 1 with scikit-learn models; probabilities written out one number at a time."""
    classes = int(y.max()) + 1
    seed_order = RandomOrder(len(x), child_rng(rng)).take(0, k0).tolist()
    chosen, weights = list(seed_order), [1.0] * k0
    pool = [i for i in range(len(x)) if i not in chosen]
    for _ in range(rounds):
        models = []
        for _ in range(2 if rule == "disagreement" else 1):
            model = model_of(int(rng.integers(2**31)))
            models.append(model.fit(x[chosen], y[chosen], sample_weight=np.array(weights)))
        beliefs = []
        for model in models:
            table = model.predict_proba(x[pool])
            row = {i: dict(zip(model.classes_.tolist(), table[r], strict=True)) for r, i in enumerate(pool)}
            beliefs.append(row)
        score = {}
        for i in pool:
            if rule == "entropy":
                score[i] = -sum(p * np.log2(p) for p in beliefs[0][i].values() if p > 0) / np.log2(classes)
            else:
                terms = [b[i].get(int(y[i]), 0.0) for b in beliefs]
                terms = [p * np.log(p) if p > 0 else 0.0 for p in terms]
                score[i] = abs(terms[0] - (terms[1] if rule == "disagreement" else 0.0))
        for i, _, _, _, weight, _ in literal_round(pool, score, k, cap, rng):
            chosen.append(i)
            weights.append(weight)
            pool.remove(i)
    return chosen, weights


@pytest.mark.parametrize("rule", ["entropy", "loss", "disagreement"])
def test_select_subset_equals_the_literal_algorithm(rule: str) -> None:
    rng = np.random.default_rng(3)
    y = rng.integers(0, 4, 400)
    x = rng.normal(size=(400, 5)) + np.eye(5)[y] * 1.5
    chosen, weights = literal_algorithm(x, y, rule, 20, 25, 3, 1.5, np.random.default_rng(9))
    result = select_subset(
        x,
        model_of,
        rule,
        labels=y,
        k0=20,
        k=25,
        rounds=3,
        cap=1.5,
        rng=np.random.default_rng(9),
    )
    assert result.index.tolist() == chosen
    np.testing.assert_allclose(result.weight, weights, rtol=1e-9)
