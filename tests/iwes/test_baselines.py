"""One contract for every baseline, then each against its textbook form."""

import itertools

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster
from scipy.cluster.hierarchy import linkage as scipy_linkage
from scipy.stats import chisquare

from iwes import BadArgument, EmptyPool, baselines, entropy
from iwes.baselines import STRATEGIES, Candidates, coreset, gradient
from iwes.baselines.clustered import take_turns
from iwes.baselines.geometry import Factored
from iwes.baselines.gradient import spread
from iwes.baselines.linkage import average_linkage


def pool(n: int = 200, classes: int = 4, d: int = 6, seed: int = 0, labelled: int = 0) -> Candidates:
    rng = np.random.default_rng(seed)
    return Candidates(
        probabilities=rng.dirichlet(np.full(classes, 0.5), n),
        features=rng.normal(size=(n, d)),
        labelled=rng.normal(size=(labelled, d)) if labelled else None,
    )


@pytest.fixture(params=STRATEGIES, ids=str)
def strategy(request: pytest.FixtureRequest) -> baselines.Strategy:
    return STRATEGIES[request.param]


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


class TestContract:
    @pytest.mark.parametrize("k", [1, 2, 37, 199, 200])
    def test_chooses_k_different_candidates(self, strategy: baselines.Strategy, k: int) -> None:
        chosen = strategy(pool(), k, rng=rng())
        assert chosen.shape == (k,)
        assert chosen.dtype == np.int64
        assert len(set(chosen.tolist())) == k
        assert chosen.min() >= 0
        assert chosen.max() < 200

    def test_pool_smaller_than_k_is_chosen_whole(self, strategy: baselines.Strategy) -> None:
        assert sorted(strategy(pool(n=7), 50, rng=rng())) == list(range(7))

    def test_same_seed_same_choice_without_touching_global_state_or_inputs(self, strategy: baselines.Strategy) -> None:
        candidates = pool()
        before = candidates.probabilities.copy(), candidates.features.copy()
        state = np.random.get_state()[1].copy()
        one, other = strategy(candidates, 30, rng=rng(5)), strategy(candidates, 30, rng=rng(5))
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(candidates.probabilities, before[0])
        np.testing.assert_array_equal(candidates.features, before[1])
        np.testing.assert_array_equal(np.random.get_state()[1], state)

    def test_pool_of_doubles_gives_no_task_twice(self, strategy: baselines.Strategy) -> None:
        one = pool(n=3)
        doubles = Candidates(np.repeat(one.probabilities, 40, axis=0), np.repeat(one.features, 40, axis=0))
        assert len(set(strategy(doubles, 60, rng=rng()).tolist())) == 60

    def test_certain_model_and_equal_features_still_give_k(self, strategy: baselines.Strategy) -> None:
        flat = Candidates(np.tile([1.0, 0.0], (50, 1)), np.ones((50, 3)))
        assert len(set(strategy(flat, 20, rng=rng()).tolist())) == 20

    def test_single_precision_will_do(self, strategy: baselines.Strategy) -> None:
        candidates = pool()
        single = Candidates(candidates.probabilities.astype(np.float32), candidates.features.astype(np.float32))
        assert len(set(strategy(single, 30, rng=rng()).tolist())) == 30

    def test_empty_pool_and_bad_k_are_named(self, strategy: baselines.Strategy) -> None:
        with pytest.raises(EmptyPool):
            strategy(Candidates(np.empty((0, 2)), np.empty((0, 3))), 5, rng=rng())
        with pytest.raises(BadArgument, match="k is 0"):
            strategy(pool(), 0, rng=rng())
        with pytest.raises(BadArgument, match="of the same tasks"):
            strategy(Candidates(np.full((5, 2), 0.5), np.ones((6, 3))), 2, rng=rng())


def test_missing_parts_and_bad_features_are_named() -> None:
    with pytest.raises(BadArgument, match="probabilities is missing"):
        baselines.margin(Candidates(features=np.ones((5, 2))), 2, rng=rng())
    with pytest.raises(BadArgument, match="features is missing"):
        baselines.kcenter(Candidates(np.full((5, 2), 0.5)), 2, rng=rng())
    broken = np.ones((5, 2))
    broken[3, 1] = np.nan
    with pytest.raises(BadArgument, match="features: row 3 is not finite"):
        baselines.kcenter(Candidates(features=broken), 2, rng=rng())
    with pytest.raises(BadArgument, match="labelled has 3 columns but features 2"):
        baselines.kcenter(Candidates(features=np.ones((5, 2)), labelled=np.ones((1, 3))), 2, rng=rng())
    with pytest.raises(BadArgument, match="partitions is 9"):
        baselines.badge(pool(), 5, rng=rng(), partitions=9)
    with pytest.raises(BadArgument, match=r"oversample is 0\.5"):
        baselines.cluster_margin(pool(), 5, rng=rng(), oversample=0.5)


def test_uncertain_ones_are_the_sorted_top() -> None:
    p = pool().probabilities
    ordered = np.sort(p, axis=1)
    assert baselines.margin(pool(), 20, rng=rng()).tolist() == np.argsort(ordered[:, -1] - ordered[:, -2])[:20].tolist()
    assert baselines.least_confident(pool(), 20, rng=rng()).tolist() == np.argsort(ordered[:, -1])[:20].tolist()
    assert baselines.entropy_topk(pool(), 20, rng=rng()).tolist() == np.argsort(-entropy(p))[:20].tolist()


def slow_kcenter(features: np.ndarray, centres: np.ndarray, chosen: list[int], k: int) -> list[int]:
    centres = [*centres, *features[chosen]]
    while len(chosen) < k:
        far = [-1.0 if i in chosen else min(((f - c) ** 2).sum() for c in centres) for i, f in enumerate(features)]
        chosen.append(int(np.argmax(far)))
        centres.append(features[chosen[-1]])
    return chosen


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("labelled", [0, 1, 15])
def test_kcenter_makes_the_textbook_choices(seed: int, labelled: int) -> None:
    candidates = pool(n=60, d=3, seed=seed, labelled=labelled)
    chosen = baselines.kcenter(candidates, 25, rng=rng(seed))
    start = [] if labelled else [int(chosen[0])]
    centres = candidates.labelled if labelled else np.empty((0, 3))
    assert chosen.tolist() == slow_kcenter(candidates.features, centres, start, 25)


def textbook_kcenter(features: np.ndarray, labelled: np.ndarray, k: int) -> list[int]:
    far = ((features[:, None] - labelled[None]) ** 2).sum(axis=2).min(axis=1)
    chosen: list[int] = []
    while len(chosen) < k:
        chosen.append(int(np.argmax(far)))
        far = np.minimum(far, ((features - features[chosen[-1]]) ** 2).sum(axis=1))
        far[chosen] = -1.0
    return chosen


@pytest.mark.parametrize("front", [1, 10, 512])
@pytest.mark.parametrize("d", [2, 40])
def test_kcenter_needs_no_look_at_the_whole_pool_to_be_right(
    front: int, d: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coreset, "FRONT", front)
    candidates = pool(n=2500, d=d, labelled=10)
    expected = textbook_kcenter(candidates.features, candidates.labelled, 150)
    assert baselines.kcenter(candidates, 150, rng=rng()).tolist() == expected


def test_first_center_is_uniform_without_labels() -> None:
    first = [int(baselines.kcenter(pool(n=5), 1, rng=rng(s))[0]) for s in range(1000)]
    assert chisquare(np.bincount(first, minlength=5)).pvalue > 0.001


def test_factored_distances_are_those_of_the_whole_gradients() -> None:
    r = rng()
    a, h = r.normal(size=(30, 4)), r.normal(size=(30, 7))
    whole = np.einsum("ni,nj->nij", a, h).reshape(30, -1)
    expected = ((whole[:, None] - whole[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(Factored(a, h).square(np.arange(30), np.arange(30)), expected, atol=1e-9)


@pytest.mark.parametrize("proposals", [1, 3, 64])
def test_badge_draws_in_proportion_to_squared_distances(proposals: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every sequence of choices is as frequent as k-means++ makes it, whether bounds are fresh or outdated."""
    monkeypatch.setattr(gradient, "PROPOSALS", proposals)
    r = rng(3)
    a, h = r.normal(size=(6, 2)), r.normal(size=(6, 3))
    whole = np.einsum("ni,nj->nij", a, h).reshape(6, -1)
    square = ((whole[:, None] - whole[None]) ** 2).sum(axis=2)
    first = int(np.argmax((whole**2).sum(axis=1)))
    rest = [i for i in range(6) if i != first]
    exact = {}
    for path in itertools.permutations(rest, 3):
        chance, chosen = 1.0, [first]
        for point in path:
            d = square[:, chosen].min(axis=1)
            chance *= d[point] / d.sum()
            chosen.append(point)
        exact[path] = chance
    assert sum(exact.values()) == pytest.approx(1.0)
    count = dict.fromkeys(exact, 0)
    runs = 1500
    generator = rng(4)
    for _ in range(runs):
        chosen = spread(Factored(a, h), 4, rng=generator).tolist()
        assert chosen[0] == first
        count[tuple(chosen[1:])] += 1
    assert chisquare(list(count.values()), np.array(list(exact.values())) * runs).pvalue > 0.001


def test_badge_partitions_share_the_choice() -> None:
    chosen = baselines.badge(pool(), 20, rng=rng(), partitions=7)
    assert len(set(chosen.tolist())) == 20
    parts = np.array_split(rng().permutation(200), 7)
    assert [int(np.isin(chosen, part).sum()) for part in parts] == [3, 3, 3, 3, 3, 3, 2]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [1, 3, 20, 79, 80])
def test_average_linkage_cuts_as_scipy_does(seed: int, count: int) -> None:
    features = np.random.default_rng(seed).normal(size=(80, 3))
    ours = average_linkage(features, count)
    theirs = fcluster(scipy_linkage(features, "average"), count, criterion="maxclust")
    together = ours[:, None] == ours[None]
    np.testing.assert_array_equal(together, theirs[:, None] == theirs[None])
    assert len(np.unique(ours)) == count


def test_turns_go_round_the_clusters_smallest_first() -> None:
    cluster = np.array([0] * 5 + [1] * 2 + [2] * 3)
    places = take_turns(cluster, 10, rng=rng())
    assert cluster[places].tolist() == [1, 2, 0, 1, 2, 0, 2, 0, 0, 0]
    assert sorted(places) == list(range(10))


def test_cluster_margin_takes_one_uncertain_task_from_each_given_cluster() -> None:
    candidates = pool()
    clusters = np.arange(200) % 10
    chosen = baselines.cluster_margin(candidates, 10, rng=rng(), oversample=8, clusters=clusters)
    wide = baselines.margin(candidates, 80, rng=rng())
    assert set(chosen.tolist()) <= set(wide.tolist())
    assert sorted(clusters[chosen]) == list(range(10))


def test_iwes_diverse_avoids_near_doubles_of_what_it_takes() -> None:
    """Forty groups of near-doubles: turns among clusters reach more groups than the draw alone."""
    r = rng()
    centre = r.normal(size=(40, 5)) * 10
    group = np.repeat(np.arange(40), 20)
    candidates = Candidates(r.dirichlet([1, 1], 800), centre[group] + r.normal(size=(800, 5)) * 0.01)
    reached = [len(set(group[baselines.iwes_diverse(candidates, 40, rng=rng(s))])) for s in range(5)]
    alone = [len(set(group[baselines.random(candidates, 40, rng=rng(s))])) for s in range(5)]
    assert min(reached) >= 36
    assert np.mean(alone) < 30
