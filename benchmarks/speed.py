"""Speed of `iwes` next to its peers: same process, same arrays, ratios side by side.

Run `python benchmarks/speed.py`; the peers are installed into `.cache/benchmark` on the first run (`--environment`
names another folder). `--full` lets slow peers make all k picks instead of a few. Everything runs on one thread;
times are processor times. Prints a Markdown table.
"""

import argparse
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from environment import enter  # noqa: E402

K, CLASSES, FEATURES = 1000, 10, 128
LARGE, SMALL, FEW = 1_000_000, 60_000, 30


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environment", type=Path, default=HERE.parent / ".cache" / "benchmark")
    parser.add_argument("--full", action="store_true", help="let slow peers make all picks (many minutes)")
    return parser.parse_args()


options = arguments()
enter(options.environment)

import numpy as np  # noqa: E402
import peers  # noqa: E402
from scipy.stats import chi2_contingency  # noqa: E402

from iwes import baselines, draw, entropy  # noqa: E402
from iwes.baselines import Candidates  # noqa: E402
from iwes.baselines.geometry import Factored  # noqa: E402
from iwes.baselines.gradient import spread  # noqa: E402


def make(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features of ten overlapping groups and what a half-sure linear model makes of them."""
    rng = np.random.default_rng(seed)
    group = rng.integers(CLASSES, size=rows)
    features = np.maximum(rng.normal(size=(CLASSES, FEATURES))[group] + rng.normal(size=(rows, FEATURES)), 0)
    logits = features @ rng.normal(size=(FEATURES, CLASSES)) * 0.25
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True), features


def seconds(call: Callable[[], object], repeats: int = 5) -> float:
    """The median processor time of a few runs; unlike the clock it does not mind what else the machine does."""
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        taken.append(time.process_time() - start)
    return float(np.median(taken))


def extra_memory(call: Callable[[], object]) -> int:
    """The most bytes held at a time on top of what was there before."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def row(what: str, ours: float, peer: str, theirs: float, wanted: str, note: str = "") -> None:
    cells = (what, f"{ours * 1e3:,.1f} ms", peer, f"{theirs * 1e3:,.1f} ms", f"{theirs / ours:,.1f}×", wanted, note)
    print("| " + " | ".join(cells) + " |")
    sys.stdout.flush()


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def large_pool() -> None:
    p = np.concatenate([make(LARGE // 20, seed=s)[0] for s in range(20)])
    eager = seconds(lambda: draw(entropy(p), K, rng=rng()))
    lazy = seconds(lambda: draw(lambda index: entropy(p[index]), K, rng=rng(), pool_size=LARGE))
    topk = seconds(lambda: baselines.entropy_topk(Candidates(p), K, rng=rng()))
    for name, ask in (("modAL", peers.modal_entropy), ("Baal", peers.baal_entropy)):
        theirs = seconds(lambda ask=ask: ask(p, K))
        row("1,000,000 rows: lazy IWeS-ent draw", lazy, name, theirs, "≥ 8×")
        row("1,000,000 rows: eager IWeS-ent draw", eager, name, theirs, "≥ 1.3×")
        same = set(ask(p, K).tolist()) == set(baselines.entropy_topk(Candidates(p), K, rng=rng()).tolist())
        row("1,000,000 rows: entropy top-k", topk, name, theirs, "", f"same picks: {same}")
    array = 8 * LARGE
    for what, call in (
        ("lazy", lambda: draw(lambda index: entropy(p[index]), K, rng=rng(), pool_size=LARGE)),
        ("eager", lambda: draw(entropy(p), K, rng=rng())),
    ):
        print(
            f"| 1,000,000 rows: {what} draw, peak extra memory ÷ score array | {extra_memory(call) / array:.2f} |"
            " | | | < 2 | the score array itself included |"
        )


def small_pool(full: bool) -> None:
    p, features = make(SMALL)
    few = K if full else FEW
    note = "" if full else f"peer: {FEW} picks, per pick × {K}"
    pool = Candidates(p, features)
    ours = seconds(lambda: baselines.badge(pool, K, rng=rng()), 3)
    for name, ask, wanted in (
        ("scikit-activeml", peers.activeml_badge, "≥ 80×"),
        ("reference algorithm", peers.reference_badge, "≥ 10×"),
    ):
        theirs = per_pick(lambda k, ask=ask: ask(p, features, k), few)
        row("60,000 rows: BADGE", ours, name, theirs, wanted, note)
    labelled = features[:50]
    rest = Candidates(features=features[50:], labelled=labelled)
    ours = seconds(lambda: baselines.kcenter(rest, K, rng=rng()), 3)
    theirs = per_pick(lambda k: peers.activeml_kcenter(features[50:], labelled, k), few)
    picks = peers.activeml_kcenter(features[50:], labelled, few)
    same = picks.tolist() == baselines.kcenter(rest, K, rng=rng())[:few].tolist()
    row("60,000 rows: k-center", ours, "scikit-activeml", theirs, "≥ 12×", f"same first {few} picks: {same}; {note}")
    lazy = seconds(lambda: draw(lambda index: entropy(p[index]), K, rng=rng(), pool_size=SMALL))
    eager = seconds(lambda: draw(entropy(p), K, rng=rng()))
    for name, ask in (("small-text", peers.small_text_entropy), ("cleanlab ActiveLab", peers.active_lab)):
        theirs = seconds(lambda ask=ask: ask(p, K), 1)
        row("60,000 rows: lazy IWeS-ent draw", lazy, name, theirs, "report")
        row("60,000 rows: eager IWeS-ent draw", eager, name, theirs, "report")


def per_pick(ask: Callable[[int], object], picks: int) -> float:
    """The time of K picks, from that of `picks`; what a peer does once, before picking, is counted once."""
    if picks == K:
        return seconds(lambda: ask(K), 1)
    first = seconds(lambda: ask(2), 1)
    return first + (seconds(lambda: ask(picks), 1) - first) / (picks - 2) * (K - 2)


def same_distribution(runs: int = 1500) -> None:
    """BADGE's picks after the first, on a pool of eight, counted for us and for the peers.

    scikit-activeml begins with the distances from the origin and keeps them, as if the origin had been chosen
    first; asked to do the same, ours draws the same.
    """
    r = np.random.default_rng(3)
    p, features = r.dirichlet(np.ones(3), 8), r.normal(size=(8, 4))
    slope = p - np.eye(3)[p.argmax(axis=1)]
    geometry = Factored(slope, features)
    for name, ask, bound in (
        ("the reference algorithm", peers.reference_badge, None),
        ("scikit-activeml, the origin taken as chosen,", peers.activeml_badge, geometry.norm),
    ):
        theirs = [ask(p, features, 3, seed=s) for s in range(runs)]
        ours = [spread(geometry, 3, rng=np.random.default_rng(s), bound=bound) for s in range(runs)]
        table = np.zeros((2, 64))
        for line, choices in enumerate((ours, theirs)):
            for _, second, third in choices:
                table[line, 8 * second + third] += 1
        seen = table[:, table.sum(axis=0) >= 10]
        chance = chi2_contingency(seen).pvalue
        equal = ours[0][0] == theirs[0][0]
        print(
            f"BADGE draws as {name} does: same first pick {equal}; χ² of {runs} pairs of later ones, p = {chance:.2f}"
        )


def main() -> None:
    print("| what | iwes | peer | its time | faster by | wanted | note |")
    print("|---|---|---|---|---|---|---|")
    large_pool()
    small_pool(options.full)
    print()
    same_distribution()


if __name__ == "__main__":
    main()
