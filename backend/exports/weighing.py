"""The weight each row goes out with: four ways to make one of what is known of its draw."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

import iwes
from backend.exports.wish import Weights
from store import weighted_facts, weighted_set
from store.tables import Project, Round
from store.weighted_set import LABELLED, RESERVE, UNLABELLED, Part, WeightedRow, WeightedRows

Weigh = Callable[[WeightedRows], Sequence[float]]


def weighing(session: Session, project: Project, part: Part, weights: Weights) -> Weigh:
    """All but those of the paper depend on the other rows, which are read for it once, without their data."""
    if weights is Weights.PAPER:
        return lambda rows: rows["weight"]
    if weights is Weights.MEAN1:
        paper = [row.weight for row in weighted_set.rows(session, project, part, data=False)]
        mean = sum(paper) / len(paper) if paper else 1.0
        return lambda rows: [weight / mean for weight in rows["weight"]]
    unbiased = _unbiased(session, project, part)
    if weights is Weights.UNBIASED:
        return lambda rows: [unbiased(row) for row in rows]
    sums: Counter[str] = Counter()
    for row in weighted_set.rows(session, project, part, data=False):
        sums[row.stratum] += unbiased(row)  # type: ignore[assignment]
    sizes = weighted_facts.sizes(session, project)
    scale = {stratum: sizes[stratum] / mass if mass else 1.0 for stratum, mass in sums.items()}
    return lambda rows: [unbiased(row) * scale[row.stratum] for row in rows]


@dataclass(frozen=True)
class _Sequence:
    """The rounds of one stratum: the annotators', or the subset's."""

    rounds: list[Round]
    coin: dict[int, float]
    known: list[float]

    def of_drawn(self, row: WeightedRow) -> float:
        """Known from the next round on. One of a round that was not drawn then, as of a moment, counts as manual."""
        if row.round not in self.coin:
            return self.of_manual(row)
        coin = 0.0 if row.provenance == RESERVE else self.coin[row.round] / (row.inclusion or 1.0)
        return coin + self.known[bisect_left(self.rounds, row.round, key=lambda round_: round_.number) + 1]

    def of_manual(self, row: WeightedRow) -> float:
        """Until it was made, its task was in the pool, and others stood for it."""
        made = datetime.fromisoformat(row.created)
        return self.known[bisect_left(self.rounds, made, key=lambda round_: round_.drawn_at)]


def _unbiased(session: Session, project: Project, part: Part) -> Callable[[WeightedRow], float]:
    answered: Counter[tuple[str, int | None]] = Counter(
        (row.stratum, row.round)
        for row in weighted_set.rows(session, project, part, data=False)
        if row.round is not None and row.provenance != RESERVE
    )
    subset = weighted_set.training_subset(session, project, part)
    drawn = {UNLABELLED: weighted_set.sequence(session, project, None, part)}
    drawn[LABELLED] = weighted_set.sequence(session, project, subset, part) if subset else []
    sequences = {stratum: _sequence(rounds, stratum, answered) for stratum, rounds in drawn.items()}

    def weigh(row: WeightedRow) -> float:
        if row.round is not None:
            return sequences[row.stratum].of_drawn(row)
        return 1.0 if row.came else sequences[UNLABELLED].of_manual(row)

    return weigh


def _sequence(rounds: list[Round], stratum: str, answered: Counter[tuple[str, int | None]]) -> _Sequence:
    found = iwes.PoolWeights(
        drawn=[round_.batch_size for round_ in rounds],
        answered=[min(answered[stratum, round_.number], round_.batch_size) for round_ in rounds],
        examined=[min(round_.examined, round_.pool_size) for round_ in rounds],
        pool_size=[round_.pool_size for round_ in rounds],
    )
    coin = {round_.number: value for round_, value in zip(rounds, found.coin.tolist(), strict=True)}
    return _Sequence(rounds, coin, found.known.tolist())
