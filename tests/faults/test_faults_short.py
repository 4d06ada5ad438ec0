"""A short run of the fault suite; `make faults` is the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.chaos import Wanted, run
from tests.faults.figures import table
from tests.live import EXECUTABLE


@pytest.mark.studio
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not EXECUTABLE.exists(), reason="no Label Studio here: run `make setup`")
def test_nothing_is_lost_or_counted_twice_whatever_is_killed(tmp_path: Path) -> None:
    outcome = run(tmp_path, Wanted(labels=60, kills=8, k=15, seed=117, gap=6.0))
    print(table(outcome))
    assert outcome.broken == []
    assert sum(outcome.kills.values()) == 8
    assert outcome.webhooks["dropped"] > 0
    assert outcome.by_reconcile > 0
    assert outcome.models >= 2
