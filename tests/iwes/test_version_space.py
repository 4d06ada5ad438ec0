"""IWeS-V, Enhanced-IWeS-V and IWAL on thresholds: the theorems, watched."""

import math

import numpy as np
import pytest

from iwes import BadArgument, VersionSpace, sample_version_space

GRID = np.linspace(0.0, 1.0, 11)
BEST = 4  # the true threshold is GRID[4]


def thresholds(size: int, noise: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Zero-one losses (size, 2, hypotheses) for both labels and the true labels; loss of the best: `noise`."""
    x = rng.random(size)
    says = x[:, None] >= GRID
    losses = np.stack([says, ~says], axis=1).astype(float)
    labels = ((x >= GRID[BEST]) ^ (rng.random(size) < noise)).astype(int)
    return losses, labels


def known(losses: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return losses[np.arange(len(labels)), labels]


def test_slack_by_hand() -> None:
    plain = VersionSpace(10, 1000, delta=0.1)
    assert plain.slack(50) == pytest.approx(math.sqrt(8 * math.log(2 * 1000 * 1001 * 100 / 0.1) / 50))
    enhanced = VersionSpace(10, 1000, delta=0.1, rule="enhanced")
    for p in (0.5, 0.25):
        enhanced.update(np.zeros(10), p, False)
    expected = (2 / 2) * (math.sqrt(0.75) + 6 * math.sqrt(math.log(5 * 4 / 0.1)))
    expected *= math.sqrt(math.log(8 * 1000**2 * 100 * math.log(1000) / 0.1))
    assert enhanced.slack() == pytest.approx(expected)


def test_probability_by_hand() -> None:
    space = VersionSpace(3, 100)
    assert space.probability([0.2, 0.9, 0.5]) == pytest.approx(0.7)
    space.alive[1] = False
    assert space.probability([0.2, 0.9, 0.5]) == pytest.approx(0.3)
    iwal = VersionSpace(3, 100, rule="iwal")
    assert iwal.probability([[0.2, 0.9, 0.5], [0.1, 0.9, 0.9]]) == pytest.approx(0.8)


@pytest.mark.parametrize("rule", ["iwes", "enhanced", "iwal"])
@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("runs", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_best_hypothesis_survives_and_the_returned_one_is_nearly_as_good(rule: str, noise: float, runs: int) -> None:
    size, delta = 2500, 0.1
    eliminated = exceeded = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        losses, labels = thresholds(size, noise, rng)
        result = sample_version_space(losses, labels=labels, rng=rng, delta=delta, rule=rule)
        eliminated += not result.space.alive[BEST]
        excess = (1 - 2 * noise) * abs(GRID[result.hypothesis] - GRID[BEST])
        exceeded += excess > 2 * result.space.slack(size - 1)
        assert result.alive[-1] < len(GRID)
    print(f"\n{rule}, noise {noise}: best eliminated in {eliminated} of {runs} runs, 2Δ exceeded in {exceeded}")
    assert eliminated <= delta * runs
    assert exceeded <= delta * runs


def coefficient(noise: float) -> float:
    """The disagreement coefficient sup_r E[max |l(h) − l(h*)| over ρ(h, h*) ≤ r] / r, exactly."""
    cells = np.linspace(0.0005, 0.9995, 1000)
    says = cells[:, None] >= GRID
    # |l(h) − l(h*)| is 1 where the two say different things, whatever the label.
    differ = says != says[:, [BEST]]
    rho = differ.mean(axis=0)
    radii = np.unique(rho[rho > 0])
    return max(differ[:, rho <= r].any(axis=1).mean() / r for r in radii)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["iwes", "enhanced"])
def test_sampling_rate_falls_as_the_theorem_says(rule: str) -> None:
    """E[p_t] ≤ 4θ(L* + Δ_{t−1}): living hypotheses lose at most L* + 2Δ, so they lie within 2L* + 2Δ of the best."""
    size = 60_000
    theta = coefficient(0.0)
    assert theta == pytest.approx(2.0, rel=0.01)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        losses, labels = thresholds(size, 0.0, rng)
        result = sample_version_space(known(losses, labels), rng=rng, rule=rule)
        space = VersionSpace(len(GRID), size, rule=rule)
        mass = np.cumsum(result.probability)
        informative = 0
        for stop in range(5000, size + 1, 5000):
            space._mass = mass[stop - 5001]
            bound = 4 * theta * space.slack(stop - 5001)
            rate = result.probability[stop - 5000 : stop].mean()
            assert rate <= bound + 3 * math.sqrt(rate / 5000)
            informative += bound < 0.9
        print(
            f"\n{rule}: sampling rate {result.probability[:1000].mean():.2f} at first, {rate:.3f} ≤ {bound:.2f} at last"
        )
        assert informative >= 3
        assert result.probability[-5000:].mean() < 0.3 * result.probability[:1000].mean()


def test_knowing_the_label_never_asks_more_than_iwal() -> None:
    """On the same stream and coins, with a loss whose differences depend on the label (squared error)."""
    size = 2000
    rng = np.random.default_rng(0)
    slope = np.linspace(0.05, 0.95, 19)
    x = rng.random(size)
    says = np.clip(slope * x[:, None] * 2, 0, 1)
    losses = np.stack([says**2, (1 - says) ** 2], axis=1)
    fewer = []
    for seed in range(3):
        labels = (np.random.default_rng(seed).random(size) < np.clip(0.4 * x * 2, 0, 1)).astype(int)
        asked = {}
        for rule in ("iwes", "iwal"):
            result = sample_version_space(losses, labels=labels, rng=np.random.default_rng(seed), rule=rule)
            asked[rule] = result.accepted.sum()
        fewer.append(asked["iwes"] / asked["iwal"])
    print(f"\nlabels asked by IWeS-V for each asked by IWAL: {np.mean(fewer):.2f}")
    assert max(fewer) <= 1.0
    assert np.mean(fewer) < 0.95


def test_weighted_losses_are_unbiased() -> None:
    rng = np.random.default_rng(0)
    losses, labels = thresholds(2000, 0.1, rng)
    table = known(losses, labels)
    estimate = np.zeros(len(GRID))
    for seed in range(6):
        result = sample_version_space(table, rng=np.random.default_rng(seed))
        estimate += result.weight @ table / 2000 / 6
    assert abs(estimate[BEST] - table[:, BEST].mean()) < 0.02


def test_bad_input_is_named() -> None:
    with pytest.raises(BadArgument, match="delta is 2"):
        VersionSpace(5, 100, delta=2)
    with pytest.raises(BadArgument, match="horizon 1"):
        VersionSpace(5, 1)
    with pytest.raises(BadArgument, match='rule is "best"'):
        VersionSpace(5, 100, rule="best")
    with pytest.raises(BadArgument, match="scale the loss"):
        VersionSpace(2, 100).probability([0.0, 1.5])
    with pytest.raises(BadArgument, match="one per hypothesis"):
        VersionSpace(2, 100).probability([0.0, 0.5, 1.0])
    with pytest.raises(BadArgument, match="IWAL"):
        sample_version_space(np.zeros((10, 3)), rng=np.random.default_rng(), rule="iwal")
    with pytest.raises(BadArgument, match="give labels"):
        sample_version_space(np.zeros((10, 2, 3)), rng=np.random.default_rng())
