"""`python -m benchmarks.labels.helped`: what the model's help with estimates of its accuracy is worth, and whether
intervals hold the truth with it.

Models are trained on labels drawn by lot; then batch after batch is drawn by each of them from the same tasks, and what
its labels say of the model is held against what is true of all of these. Takes `--data`, `--pool`, `--seeds` and
`--cache` as `benchmarks.labels` does; no batch is trained on.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import iwes
from benchmarks import side_by_side
from benchmarks.labels import model, work
from benchmarks.labels.data import DATASETS, NoData
from benchmarks.labels.options import Options, options
from benchmarks.labels.pools import TITLES, Pool
from benchmarks.page import table
from models.feed import Picked

DRAWS = 100
TRAINED_ON = (100, 400)
BATCHES = (50, 200)
SCORES = {"IWeS-ent": iwes.entropy, "IWeS-margin": iwes.margin}
MOST = 20_000
"""Tasks that are drawn from: of a larger pool so many, by lot."""
ALONE, HELPED = "alone", "helped"
Key = tuple[str, str, str, int, str]
"""The data, the pool, the rule, the batch, and who estimates."""


@dataclass(frozen=True)
class Judged:
    """What one model says of the tasks it draws from, and whether it is right; of those that show something."""

    beliefs: NDArray[np.float64]
    right: NDArray[np.float64]
    answered: NDArray[np.bool_]

    @property
    def truth(self) -> float:
        return float(self.right[self.answered].mean())

    def estimates(self, score: NDArray[np.float64], k: int, rng: np.random.Generator) -> dict[str, iwes.Estimate]:
        """From one batch, drawn as the product draws."""
        looked_at: list[NDArray[np.int64]] = []

        def scores(places: NDArray[np.int64]) -> NDArray[np.float64]:
            looked_at.append(places)
            return np.asarray(score[places])

        size, sure = len(score), self.beliefs.max(axis=1)
        drawn = iwes.draw(scores, k, rng=rng, pool_size=size, floor=0.05, reserve=0.5, batch=256)
        asked = drawn.index[: drawn.batch_size]
        kept, chance = self.answered[asked], drawn.inclusion[: drawn.batch_size]
        right = self.right[asked]
        seen = {"examined": drawn.examined, "pool_size": size}
        about = np.unique(np.concatenate(looked_at))
        return {
            ALONE: iwes.estimate_mean(right[kept], chance[kept] * kept.mean(), **seen),
            HELPED: iwes.assisted_mean(
                right, chance, sure[asked], float(sure[about].mean()), within=kept, **seen, asked_about=len(about)
            ),
        }


def judged(pool: Pool, learner_name: str, asked: Options, seed: int, count: int) -> Judged:
    rng = np.random.default_rng([seed, count])
    learner = model.learner_for(learner_name, pool, asked.cache, asked.device)
    places = iwes.draw_seed(len(pool), count, rng=rng).index
    trained = model.train(learner, pool, places, np.ones(count), seed=seed)
    left = rng.permutation(np.setdiff1d(np.arange(len(pool)), places))[:MOST]
    beliefs = trained.probabilities(Picked(pool.images, left))
    answers = pool.answers[left]
    return Judged(beliefs, (beliefs.argmax(axis=1) == answers).astype(np.float64), answers >= 0)


def held(asked: Options, draws: int = DRAWS) -> Iterator[tuple[Key, iwes.Estimate, float]]:
    """Each estimate with the truth, model by model."""
    for data, path in asked.data.items():
        learner = asked.learner(data)
        for kind in asked.pools:
            pool = work.pool(data, path, kind, learner, asked.cache)
            for seed in range(asked.seeds[data]):
                for count in TRAINED_ON:
                    side_by_side.say(f"{data}, {kind}: model {seed} of {count} labels")
                    one = judged(pool, learner, asked, seed, count)
                    for (rule, score), k, number in (
                        (rule, k, number) for rule in SCORES.items() for k in BATCHES for number in range(draws)
                    ):
                        rng = np.random.default_rng([seed, count, k, number])
                        for who, estimate in one.estimates(score(one.beliefs), k, rng).items():
                            yield (data, kind, rule, k, who), estimate, one.truth


def summary(found: Iterator[tuple[Key, iwes.Estimate, float]]) -> str:
    groups: dict[Key, list[tuple[bool, float, float]]] = defaultdict(list)
    for key, estimate, truth in found:
        half = (estimate.high - estimate.low) / 2
        groups[key].append((estimate.low <= truth <= estimate.high, half, estimate.value - truth))
    rows = []
    for data, kind, rule, k, _ in list(groups)[::2]:
        figures = []
        for who in (ALONE, HELPED):
            covered, half, off = np.array(groups[data, kind, rule, k, who], np.float64).T
            figures += [f"{covered.mean():.1%}", f"±{half.mean():.3f}", f"{np.sqrt((off**2).mean()):.3f}"]
            figures.append(f"{off.mean():+.3f}")
        rows.append([DATASETS[data].title, TITLES[kind], rule, str(k), *figures])
    told = ["covered", "half-width", "r.m.s. error", "bias"]
    return table(["", "pool", "rule", "batch", *(f"{one}, {who}" for who in (ALONE, HELPED) for one in told)], rows)


def main(words: Sequence[str] | None = None) -> int:
    asked = options(words)
    try:
        asked = work.here(asked)
        print(summary(held(asked)))
    except (NoData, model.NoWeights) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
