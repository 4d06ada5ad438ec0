"""The coin stream: pass over the pool in random order, toss a coin per task, stop once enough are accepted."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from iwes.chance import Chance, Scaling, growth, inclusion
from iwes.draw import Draw, check_pool_size, child_rng, reserve_size
from iwes.errors import BadArgument, ZeroScores
from iwes.order import RandomOrder
from iwes.weight import training_weight

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Scorer = Callable[[Indices], ArrayLike]

BLOCK = 1 << 14  # coins tossed together where no score function has to be waited for
CERTAIN = 1e-6  # a first-pass probability that all further passes together make as good as certain
MAX_PASSES = 20_000  # enough for p = CERTAIN to be accepted but for one chance in 10⁸


def draw(
    score: ArrayLike | Scorer,
    k: int,
    *,
    rng: np.random.Generator,
    pool_size: int | None = None,
    floor: float = 0.05,
    cap: float = 2.0,
    reserve: float = 0.0,
    sharpness: float = 1.0,
    scaling: Scaling = "stream",
    batch: int = 256,
) -> Draw:
    """Accept k tasks, each with a probability made of its score, and k × `reserve` more as a reserve.

    `score` is an array (n,), each value in [0, 1], high = ask for it; or a function that is given task indices
    (m,), at most `batch` of them, and returns their scores (m,). The function is asked in stream order, never
    twice for a task, and not beyond the block in which the draw ends: about (k + reserve) / mean(p) evaluations,
    whatever `pool_size` is. The draw depends on the scores and on `rng` alone: not on `batch`, nor on how the
    function splits its work among workers; and the batch does not depend on `reserve`.

    The probability p is max(`floor`, score ** `sharpness`). With scaling "pool" it is min(1, c · that), c such
    that Σp = k, which needs every score and takes scores of any size ≥ 0; p may then be lower than `floor`,
    which still bounds the ratio of any two. After j passes over the whole pool p is multiplied by 1 + j/10, up
    to 1. The weight is min(1/p, `cap`). The paper's draw is `floor=0.0` with the paper's `cap`.

    Ends of the road: an empty pool raises `EmptyPool`; a pool of k tasks or fewer is returned whole, inclusion 1
    (a task that no coin would accept has probability 1); fewer than k tasks with a score above zero (or so close
    to zero that 20,000 passes would not do) raise `ZeroScores`; a reserve that cannot be filled is shorter.
    """
    wanted = k + reserve_size(k, reserve)
    if batch < 1:
        raise BadArgument(f"batch is {batch}: expected the number of tasks to score together, 1 or more")
    chance = Chance(floor=floor, sharpness=sharpness, scaling=scaling)
    if callable(score):
        if pool_size is None:
            raise BadArgument("score is a function: give pool_size, the number of tasks in the pool")
        scorer, block = score, batch
    else:
        array = np.asarray(score, dtype=np.float64)
        if array.ndim != 1 or pool_size not in (None, len(array)):
            raise BadArgument(
                f"score has shape {array.shape} and pool_size is {pool_size}: expected one score per task"
            )
        pool_size = len(array)
        chance.check(array)
        scorer, block = array.__getitem__, BLOCK
    check_pool_size(pool_size)
    order, coins = RandomOrder(pool_size, child_rng(rng)), child_rng(rng)
    if scaling == "pool":
        known = _score_all(scorer, pool_size, block, chance)
        chance = chance.scaled_to(known, k)
        scorer, block = known.__getitem__, BLOCK
    enough, wanted = min(k, pool_size), min(wanted, pool_size)
    stream = _Stream(order, coins, chance)
    stream.first_pass(scorer, block, wanted)
    stream.later_passes(wanted, enough)
    return stream.result(enough, cap)


def asked_first(pool_size: int, count: int, *, rng: np.random.Generator) -> Indices:
    """The first `count` tasks whose scores `draw` would ask for with such an `rng`, whatever the scores will be; shape
    (count,), fewer where the pool is smaller. For getting ready what scoring them takes."""
    check_pool_size(pool_size)
    return RandomOrder(pool_size, child_rng(rng)).take(0, count).copy()


def _score_all(scorer: Scorer, size: int, block: int, chance: Chance) -> Floats:
    parts = [np.arange(start, min(start + block, size)) for start in range(0, size, block)]
    return np.concatenate([chance.check(scorer(part), part) for part in parts])


class _Stream:
    """What has been seen and accepted so far. Coins are used in stream order, so blocks leave no trace."""

    def __init__(self, order: RandomOrder, coins: np.random.Generator, chance: Chance) -> None:
        self.order = order
        self.coins = coins
        self.chance = chance
        self.seen: list[Floats] = []  # the scores in stream order, as far as read
        self.position: list[Indices] = []
        self.passes: list[Indices] = []
        self.probability: list[Floats] = []
        self.accepted = 0

    def first_pass(self, scorer: Scorer, block: int, wanted: int) -> None:
        start = 0
        while self.accepted < wanted and start < self.order.size:
            index = self.order.take(start, start + block)
            score = self.chance.check(scorer(index), index)
            self.seen.append(score)
            self._toss(np.arange(start, start + len(index)), self.chance.of(score), 0, wanted)
            start += len(index)

    def later_passes(self, wanted: int, enough: int) -> None:
        """Pass over what is left, in the same order, until `wanted` are accepted.

        A pool that is wanted whole (`enough` is its size) is taken whole; otherwise `enough` tasks must have a
        chance, and what is wanted beyond them shrinks to those that do.
        """
        size = self.order.size
        if self.accepted >= wanted:
            return
        score = np.concatenate(self.seen)
        left = np.delete(np.arange(size), np.concatenate(self.position))
        first = self.chance.of(score)
        likely = self.accepted + int(np.minimum(first[left] / CERTAIN, 1.0).sum())
        if likely < enough < size:
            raise ZeroScores(
                f"{likely} of {size} tasks have a score above zero but k is {enough}: set floor above 0, or draw fewer"
            )
        wanted = min(wanted, likely)
        finished = 0
        while self.accepted < wanted and finished < MAX_PASSES:
            finished += 1
            before = len(self.position)
            for start in range(0, len(left), BLOCK):
                part = left[start : start + BLOCK]
                self._toss(part, np.minimum(first[part] * growth(finished), 1.0), finished, wanted)
                if self.accepted >= wanted:
                    break
            left = np.delete(left, np.searchsorted(left, np.concatenate(self.position[before:])))
        if self.accepted < enough and len(left):
            self._toss(left, np.ones(len(left)), finished + 1, enough)

    def _toss(self, position: Indices, p: Floats, finished: int, wanted: int) -> None:
        hit = np.flatnonzero(self.coins.random(len(p)) < p)[: wanted - self.accepted]
        self.position.append(position[hit])
        self.passes.append(np.full(len(hit), finished))
        self.probability.append(p[hit])
        self.accepted += len(hit)

    def result(self, batch_size: int, cap: float) -> Draw:
        position, passes = np.concatenate(self.position), np.concatenate(self.passes)
        probability = np.concatenate(self.probability)
        score = np.concatenate(self.seen)[position]
        first = self.chance.of(score)
        pi = np.empty(len(position))
        for part in (slice(0, batch_size), slice(batch_size, len(position))):
            if part.start < part.stop:
                # A task up to the place where the draw stopped has been tossed a coin in the last pass as well.
                exposures = passes[part.stop - 1] + (position[part] <= position[part.stop - 1])
                pi[part] = inclusion(first[part], exposures)
        if batch_size == self.order.size:
            pi[:] = 1.0
        last = batch_size - 1
        return Draw(
            index=self.order.take(0, int(position.max()) + 1)[position],
            position=position,
            passes=passes,
            score=score,
            probability=probability,
            weight=training_weight(probability, cap=cap),
            inclusion=pi,
            examined=self.order.size if passes[last] > 0 else int(position[last]) + 1,
            batch_size=batch_size,
            pool_size=self.order.size,
        )
