"""Rows with their images, for formats that hold both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from backend.exports.errors import NotNow
from backend.exports.manifest import Tally
from backend.exports.record import Lines, Record
from jobs.images import Originals
from jobs.images.reasons import Away, SetAside
from jobs.workplace import Workplace
from store.tables import Project
from store.weighted_set import WeightedRow, WeightedRows
from studio.client import Client


class Picture(NamedTuple):
    row: WeightedRow
    record: Record
    content: bytes
    suffix: str


def pictures(place: Workplace, project: Project, lines: Iterable[Lines], tally: Tally) -> Iterator[Picture]:
    """Counts those that have an image; one that cannot be read is left out, and the manifest says why. One that only
    cannot be had now fails the export: what is there now and not later would be another set."""
    client = None if project.root is not None else Client(project.studio_url, project.token)
    originals = Originals(project, client, place.settings.image_prefixes)
    records = ((line, line.record) for some in lines for line in some)
    tasks = ((one, {project.field: one[1]["image"]}) for one in records)
    for (line, record), found in originals.beside(tasks):
        if isinstance(found, Away):
            raise NotNow(f"the image of task {line.row.task} cannot be had now: {found}; try again later")
        if isinstance(found, SetAside):
            tally.left_out[line.row.task] = str(found)
            continue
        tally.add(WeightedRows.of([line.row]), [record["weight"]], line.json + b"\n")
        yield Picture(line.row, record, found.content, found.suffix)
