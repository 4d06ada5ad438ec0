"""The first rows of an export, for a look before it is made."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from backend.exports.export import Writing
from backend.exports.record import Record
from backend.exports.wish import Wish
from iwes.training_set.columns import COLUMNS
from jobs.workplace import Workplace
from store import projects, weighted_facts

FIRST = 20


@dataclass(frozen=True)
class Preview:
    columns: list[str]
    rows: list[Record]
    most: int
    """How many rows there are at most: labels of classes that are no more, and rows of other rounds or strata than
    asked for, are found out only by looking at each."""


def preview(place: Workplace, project_id: int, wish: Wish, first: int = FIRST) -> Preview:
    """What the rows of the file would say, `data` as a dict. With weights other than those of
    the paper it has to look at all rows first. Raises ExportError, BadSubset, UnknownProject."""
    with place.store.snapshot() as session:
        project = projects.by_id(session, project_id)
        every = (line.record for some in Writing(place, session, project, wish).lines() for line in some)
        rows = list(islice(every, first))
        return Preview(list(COLUMNS), rows, weighted_facts.most(session, project, wish.part(session, project)))
