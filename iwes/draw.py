"""The draw: which tasks the next round asks for, and the three numbers each of them keeps."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iwes.errors import BadArgument, EmptyPool
from iwes.order import RandomOrder

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Draw:
    """The tasks drawn, in the order of acceptance: first the batch, then the reserve. All arrays: shape (m,).

    Three numbers per task that are never mixed: `probability` is the p of the coin that accepted it, `weight`
    = min(1/p, cap) is for training, `inclusion` is the chance that the task was drawn at all by the time the
    draw stopped and is for estimates. For the batch "stopped" means its last acceptance, for the reserve the
    last acceptance of all.
    """

    index: Indices  # the task's place in the pool
    position: Indices  # its place in the random order, from 0
    passes: Indices  # finished passes over the pool when it was accepted, from 0
    score: Floats  # what the score function said; NaN in a seed draw
    probability: Floats
    weight: Floats
    inclusion: Floats
    examined: int  # different tasks looked at when the batch was complete; the pool's size after a full pass
    batch_size: int  # how many leading entries are the batch; the others are the reserve
    pool_size: int

    def __len__(self) -> int:
        return len(self.index)


def draw_seed(pool_size: int, k: int, *, rng: np.random.Generator, reserve: float = 0.0) -> Draw:
    """Draw k tasks uniformly without replacement, every weight 1, and k × `reserve` more as a reserve.

    `probability` and `inclusion` are k / pool_size in the batch and the whole draw's share of the pool in the
    reserve; `score` is NaN. A pool of fewer than k tasks gives all of them; an empty one raises `EmptyPool`.
    """
    wanted = k + reserve_size(k, reserve)
    check_pool_size(pool_size)
    batch_size, total = min(k, pool_size), min(wanted, pool_size)
    inclusion = np.full(total, total / pool_size)
    inclusion[:batch_size] = batch_size / pool_size
    return Draw(
        index=RandomOrder(pool_size, child_rng(rng)).take(0, total).copy(),
        position=np.arange(total),
        passes=np.zeros(total, dtype=np.int64),
        score=np.full(total, np.nan),
        probability=inclusion.copy(),
        weight=np.ones(total),
        inclusion=inclusion,
        examined=pool_size,
        batch_size=batch_size,
        pool_size=pool_size,
    )


def child_rng(rng: np.random.Generator) -> np.random.Generator:
    """A generator seeded by four numbers of `rng`.

    Whatever the child is used for, `rng` itself moves on by the same four numbers, so the next draw does not
    depend on how much of this one was computed ahead.
    """
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(rng.integers(0, 2**32, size=4).tolist())))


def reserve_size(k: int, reserve: float) -> int:
    """How many tasks the reserve of a batch of k holds: k × `reserve`, rounded up."""
    if k < 1:
        raise BadArgument(f"k is {k}: draw at least 1 task")
    if not 0.0 <= reserve < math.inf:
        raise BadArgument(f"reserve is {reserve}: expected a share of k, 0 or more")
    return math.ceil(k * reserve - 1e-9)


def check_pool_size(pool_size: int) -> None:
    """Raise unless there is a task to draw."""
    if pool_size < 0:
        raise BadArgument(f"pool_size is {pool_size}: expected the number of tasks in the pool")
    if pool_size == 0:
        raise EmptyPool("the pool is empty: import more tasks, or end the project")
