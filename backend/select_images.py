"""`iwes select --images` for a terminal: a subset of images on this disk, selected here and written to a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from backend.exports.export import check, export
from backend.exports.wish import Wish as ExportWish
from backend.exports.wish import format_of
from backend.selection import bar, summary
from backend.status_page import progress_words
from jobs import dataset
from jobs.select_here import Wish, select_here
from jobs.status import SubsetGlance, SubsetStatus, subset_status
from jobs.workplace import Workplace
from store import pool, projects, subsets
from store.tables import Project, Subset

SHOWN = 10
"""Doubted labels, and reasons for images set aside, that a terminal is filled with."""


def select_images(
    place: Workplace, images: Path, labels: str | None, out: Path, wish: Wish, console: Console
) -> SubsetStatus:
    """Goes on where it was stopped; what is complete is only written again."""
    wanted = format_of(out, None)
    check(wanted, out)
    found = dataset.read(images, labels)
    console.print(f"{len(found.labels)} images of {len(found.classes)} classes below {escape(str(found.root))}")
    with bar(console, wish.name or wish.rule) as show:
        spoken = ""

        def told(status: SubsetGlance, progress: Mapping[str, Any]) -> None:
            nonlocal spoken
            show(status, progress_words(progress) if progress else "")
            line = f"{status.selected} of {status.target} selected, {status.state}"
            if status.state and line != spoken and not console.is_terminal:
                console.print(line)  # a log has no bar
            spoken = line

        project, subset = select_here(place, found, wish, told)
    count = export(place, project.id, ExportWish(wanted, subset=subset.name), out).rows
    status, lines = _outcome(place, project, subset)
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print(f"{count} rows written to {escape(str(out))}", soft_wrap=True)
    return status


def _outcome(place: Workplace, project: Project, subset: Subset) -> tuple[SubsetStatus, list[str]]:
    with place.store.read() as session:
        project, subset = projects.by_id(session, project.id), subsets.by_id(session, subset.id)
        status = subset_status(session, project, subset)
        doubts = subsets.doubts(session, subset)
        doubted = [
            f"  {doubt.task.data[project.field]}: {doubt.class_name}, or rather {doubt.suggested}?"
            for doubt in doubts[:SHOWN]
        ]
        bad = pool.problems(session, project)
    lines = [summary(status), *doubted]
    if len(doubts) > SHOWN:
        lines.append(f"  … and {len(doubts) - SHOWN} more")
    if status.selected < status.target:
        lines.append(f"there are no more than {status.selected}: the others cannot be read")
    if bad:
        lines.append(f"{sum(bad.values())} images were set aside")
        lines += [f"  {count} × {reason}" for reason, count in list(bad.items())[:SHOWN]]
    return status, lines
