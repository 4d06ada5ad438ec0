"""Training ends when the loss is low enough, or when it has stopped getting lower."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from models.convergence import Convergence


def epochs_until_reached(losses: Iterable[float], *, patience: int | None = 3) -> int:
    convergence = Convergence(low_enough=0.1, patience=patience)
    return next(epoch for epoch, loss in enumerate(losses, start=1) if convergence.reached(loss))


def test_a_low_loss_is_enough() -> None:
    assert epochs_until_reached([2.0, 0.5, 0.1, 0.09]) == 4


def test_a_loss_that_finds_no_new_low_runs_out_of_patience() -> None:
    assert epochs_until_reached(itertools.chain([2.0, 1.0], itertools.repeat(1.0))) == 5


def test_a_new_low_renews_the_patience() -> None:
    assert epochs_until_reached([2.0, 1.0, 1.5, 1.5, 0.9, 1.5, 1.5, 1.5]) == 8


def test_without_a_limit_to_its_patience_only_a_low_loss_will_do() -> None:
    assert epochs_until_reached([2.0] * 50 + [0.05], patience=None) == 51
