"""Stopping advice: right although one looks after every round, where uncorrected intervals are not."""

from collections.abc import Callable

import numpy as np
import pytest

from iwes import BadArgument, Estimate, draw, estimate_mean, labels_needed, round_confidence, stopping_advice
from iwes.stopping import Advice

RUNS, ROUNDS = 300, 12


def project(score: np.ndarray, right: np.ndarray, seed: int) -> list[Estimate]:
    """The estimates of a project whose models all have the same accuracy, one draw per round."""
    rng = np.random.default_rng(seed)
    estimates = []
    for _ in range(ROUNDS):
        drawn = draw(score, 150, rng=rng)
        v = right[drawn.index]
        estimates.append(estimate_mean(v, drawn.inclusion, examined=drawn.examined, pool_size=len(score)))
    return estimates


def looks(estimates: list[Estimate], **options: float) -> list[Advice]:
    return [stopping_advice(estimates[:r], **options) for r in range(1, len(estimates) + 1)]


def test_errors_allowed_to_the_rounds_add_up_to_the_whole() -> None:
    spent = [1 - round_confidence(r, confidence=0.95) for r in range(1, 2000)]
    assert spent[0] == pytest.approx(0.025)
    assert sum(spent) == pytest.approx(0.05, rel=1e-3)
    assert sum(spent) < 0.05


@pytest.mark.slow
def test_looking_every_round_stops_wrongly_less_often_than_promised(make_pool: Callable) -> None:
    """The models are just short of the target: any stop is wrong. Uncorrected, too many projects would stop."""
    score, right = make_pool(5000, 0.2, 0.9)
    target = right.mean() + 1e-9
    corrected = uncorrected = 0
    for seed in range(RUNS):
        estimates = project(score, right, seed)
        corrected += any(advice.stop for advice in looks(estimates, target=target))
        uncorrected += any(e.low >= target for e in estimates)
    print(f"\nstopped wrongly: {corrected / RUNS:.1%}, uncorrected {uncorrected / RUNS:.1%}")
    assert corrected / RUNS <= 0.05
    assert uncorrected / RUNS > 0.05


@pytest.mark.slow
def test_intervals_of_all_rounds_hold_together(make_pool: Callable) -> None:
    score, right = make_pool(5000, 0.2, 0.8)
    truth = right.mean()
    corrected = uncorrected = 0
    for seed in range(RUNS):
        estimates = project(score, right, seed)
        widened = [advice.estimate for advice in looks(estimates, half_width=0.0)]
        corrected += any(not e.low <= truth <= e.high for e in widened)
        uncorrected += any(not e.low <= truth <= e.high for e in estimates)
    print(f"\nsome round missed the truth: {corrected / RUNS:.1%}, uncorrected {uncorrected / RUNS:.1%}")
    assert corrected / RUNS <= 0.05
    assert uncorrected / RUNS > 0.25


def test_good_model_is_recognised(make_pool: Callable) -> None:
    score, right = make_pool(5000, 0.2, 0.97)
    stopped = [any(a.stop for a in looks(project(score, right, seed), target=0.82)) for seed in range(20)]
    assert np.mean(stopped) > 0.9


def test_half_width_stops_once_the_interval_is_narrow() -> None:
    estimate = estimate_mean(np.arange(400) % 2, np.full(400, 0.1))
    assert not stopping_advice([estimate], half_width=0.04).stop
    advice = stopping_advice([estimate], half_width=0.06)
    assert advice.stop
    assert (advice.estimate.high - advice.estimate.low) / 2 <= 0.06


def test_advice_says_why() -> None:
    estimate = estimate_mean(np.arange(100) % 10 > 0, np.full(100, 0.1))
    keep_on = stopping_advice([estimate, estimate], target=0.95, half_width=0.01)
    assert not keep_on.stop
    assert keep_on.reason.startswith("round 2: surely at least 79.8 %, the target is 95 %")
    assert "; known to within ±" in keep_on.reason
    assert "the target, 50 %, is reached" in stopping_advice([estimate], target=0.5).reason


def test_bad_input_is_named() -> None:
    with pytest.raises(BadArgument, match="close a round first"):
        stopping_advice([], target=0.9)
    with pytest.raises(BadArgument, match="nothing to stop for"):
        stopping_advice([estimate_mean([1.0], [0.5])])
    with pytest.raises(BadArgument, match="rounds count from 1"):
        round_confidence(0)


def test_labels_needed_suffice_and_are_not_far_too_many() -> None:
    rng = np.random.default_rng(0)
    v, pi = (rng.random(4_000) < 0.9).astype(float), rng.uniform(0.1, 0.3, 4_000)
    few = estimate_mean(v[:200], pi[:200])
    needed = labels_needed(few, 200, 0.02)
    then = estimate_mean(v[: 200 + needed], pi[: 200 + needed])
    assert 0.014 < (then.high - then.low) / 2 <= 0.02


def test_no_more_labels_are_needed_for_what_is_known() -> None:
    plain = estimate_mean([1.0] * 90 + [0.0] * 10, [0.5] * 100)
    width = (plain.high - plain.low) / 2
    assert labels_needed(plain, 100, width + 1e-9) == 0
    assert 0 < labels_needed(plain, 100, width - 1e-3) < 10
    assert labels_needed(estimate_mean([1.0, 0.0], [1.0, 1.0]), 2, 0.02) == 0


@pytest.mark.parametrize(("answered", "half_width"), [(0, 0.02), (10, 0.0), (10, 1.0)])
def test_labels_needed_for_nothing_sensible_are_refused(answered: int, half_width: float) -> None:
    with pytest.raises(BadArgument, match="half_width"):
        labels_needed(estimate_mean([1.0, 0.0], [0.5, 0.5]), answered, half_width)
