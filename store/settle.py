"""One class out of several annotations of a task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol


class Vote(Protocol):
    """What one annotation says: a label, or the row of one."""

    @property
    def class_name(self) -> str | None: ...
    @property
    def ground_truth(self) -> bool: ...
    @property
    def updated_at(self) -> datetime: ...
    @property
    def annotation_id(self) -> int: ...


def settle(votes: Sequence[Vote]) -> str:
    """Ground truth wins, then the majority, and of equals the newest."""
    if len(votes) == 1:
        return str(votes[0].class_name)
    voters = [vote for vote in votes if vote.ground_truth] or list(votes)
    count = Counter(vote.class_name for vote in voters)
    most = max(count.values())
    newest = max(
        (vote for vote in voters if count[vote.class_name] == most),
        key=lambda vote: (vote.updated_at, vote.annotation_id),
    )
    return str(newest.class_name)
