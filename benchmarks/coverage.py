"""How often 95 % intervals of several kinds cover the truth, over many kinds of pools and draws.

Run `python benchmarks/coverage.py`; needs nothing but numpy. Prints a line per set-up and a summary.
"""

import argparse
import itertools
import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from iwes import Draw, draw, effective_size, estimate_mean
from iwes.interval import wilson

POOLS = ((2_000, 50), (2_000, 100), (2_000, 1_000), (5_000, 1_000), (10_000, 300), (60_000, 1_000))
MEANS, ACCURACIES, LINKS = (0.05, 0.1, 0.3), (0.98, 0.9, 0.7), ("proportional", "half")
Interval = tuple[float, float]


def make(size: int, mean: float, accuracy: float, link: str) -> tuple[np.ndarray, np.ndarray]:
    """Scores and whether the model is right; errors follow the score, or every second one falls anywhere."""
    rng = np.random.default_rng(5)
    score = rng.beta(1.5 * mean, 1.5 * (1 - mean), size)
    relative = score / score.mean()
    if link == "half":
        relative = 0.5 + 0.5 * relative
    return score, (rng.random(size) >= np.minimum(1, relative * (1 - accuracy))).astype(float)


def intervals(v: np.ndarray, drawn: Draw) -> dict[str, Interval]:
    """The textbook's intervals on the Hájek mean and its variance, and ours."""
    pi = drawn.inclusion
    w = 1 / pi
    mean = float(w @ v / w.sum())
    unseen = 1 / drawn.examined - 1 / drawn.pool_size
    variance = float(((1 - pi) * (w * (v - mean)) ** 2).sum() / w.sum() ** 2 + unseen * (w @ (v - mean) ** 2) / w.sum())
    half = 1.96 * math.sqrt(variance)
    kish = effective_size(w)
    ours = estimate_mean(v, pi, examined=drawn.examined, pool_size=drawn.pool_size)
    return {
        "Wald": (mean - half, mean + half),
        "Wilson, variance": wilson(mean, mean * (1 - mean) / variance if variance > 0 else kish, 1.96),
        "Wilson, effective size": wilson(mean, kish, 1.96),
        "ours": (ours.low, ours.high),
        "ours, capped weights": _bounds(v, 1 / drawn.weight, drawn),
    }


def _bounds(v: np.ndarray, inclusion: np.ndarray, drawn: Draw) -> Interval:
    result = estimate_mean(v, inclusion, examined=drawn.examined, pool_size=drawn.pool_size)
    return result.low, result.high


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=400, help="for each set-up")
    draws = parser.parse_args().draws
    covered: dict[str, list[float]] = {}
    width: dict[str, list[float]] = {}
    for (size, k), mean, accuracy, link in itertools.product(POOLS, MEANS, ACCURACIES, LINKS):
        score, right = make(size, mean, accuracy, link)
        rng = np.random.default_rng(6)
        hits: dict[str, int] = {}
        span: dict[str, float] = {}
        for _ in range(draws):
            drawn = draw(score, k, rng=rng)
            for name, (low, high) in intervals(right[drawn.index], drawn).items():
                hits[name] = hits.get(name, 0) + (low <= right.mean() <= high)
                span[name] = span.get(name, 0.0) + high - low
        for name in hits:
            covered.setdefault(name, []).append(hits[name] / draws)
            width.setdefault(name, []).append(span[name] / span["ours"])
        line = ", ".join(f"{name} {hits[name] / draws:.1%}" for name in hits)
        print(f"pool {size} batch {k} mean score {mean} truth {right.mean():.3f} {link}: {line}", flush=True)
    print("\n| interval | covered: least | median | most | median width ÷ ours |\n|---|---|---|---|---|")
    for name, shares in covered.items():
        low, middle, high = min(shares), float(np.median(shares)), max(shares)
        print(f"| {name} | {low:.1%} | {middle:.1%} | {high:.1%} | {np.median(width[name]):.2f} |")


if __name__ == "__main__":
    main()
