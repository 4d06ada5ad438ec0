"""One weight per label so that the labels of many rounds, together, stand for the whole pool."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from iwes.errors import BadArgument

Floats = NDArray[np.float64]


class PoolWeights:
    """Makes Σ w·v over all labels estimate the total of v over the pool the first round was drawn from.

    Each round tells that total by itself: what was labelled when it was drawn is known and counts as it is, and its
    batch, divided by π, stands for the rest. The rounds are averaged by their numbers of labels. So a label weighs
    its round's share of 1/π, and, from the next round on, the shares of the rounds that knew it. A label that was not
    drawn for a batch (reserve, made by hand) weighs only the latter.

    All arguments: one entry per round, in order. `drawn` is how many tasks its batch has and `answered` how many of
    them have a label: the others are taken to be like these. `examined` of `pool_size` tasks were looked at when the
    batch was complete: the others are taken to be like those, as the order was random.
    """

    coin: Floats
    """Of each round: what 1/π of its batch is multiplied by."""
    known: Floats
    """[r]: what a label weighs that was known, or on its way, when round r and all later ones were drawn; one more
    entry than rounds, and the last is 0. All 1 where no round has an answer: then labels stand for themselves alone."""

    def __init__(self, drawn: ArrayLike, answered: ArrayLike, examined: ArrayLike, pool_size: ArrayLike) -> None:
        n, a, seen, size = (np.asarray(x, dtype=np.float64) for x in (drawn, answered, examined, pool_size))
        if not (n.ndim == 1 and n.shape == a.shape == seen.shape == size.shape):
            raise BadArgument("drawn, answered, examined and pool_size: one entry each per round, shape (rounds,)")
        bad = np.flatnonzero(~((a >= 0) & (a <= n) & (seen <= size)))
        if bad.size:
            r = int(bad[0])
            raise BadArgument(
                f"round {r}: {a[r]:g} answered of {n[r]:g} drawn, {seen[r]:g} examined of {size[r]:g}: a part each"
            )
        total = a.sum()
        # A draw that stops within its first pass stops at an acceptance: without it, k − 1 in m − 1 tasks were
        # accepted.
        stopped = (seen < size) & (n > 1)
        reach = np.where(stopped, size * (n - 1) / np.maximum(n * (seen - 1), 1), 1.0)
        self.coin = np.where(a > 0, n * reach / max(total, 1.0), 0.0)
        shares = np.append(a, 0.0) / max(total, 1.0)
        self.known = np.cumsum(shares[::-1])[::-1] if total else np.ones(len(a) + 1)

    def drawn(self, round_: ArrayLike, inclusion: ArrayLike) -> Floats:
        """The weights of labels that were drawn for the batches of these rounds with these π."""
        r = np.asarray(round_, dtype=np.int64)
        return self.coin[r] / np.asarray(inclusion, dtype=np.float64) + self.known[r + 1]
