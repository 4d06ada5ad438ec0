"""`iwes export` for a terminal: reads the wish, shows how far it is, and says what was written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from backend.exports.export import Exported, export
from backend.exports.whole import manifest_of
from backend.exports.wish import Wish, format_of
from jobs.workplace import Workplace
from store.tables import Project


def export_to(
    place: Workplace, project: Project, words: Mapping[str, str | None], out: Path, console: Console
) -> tuple[Exported, Path]:
    """What was written, and where its manifest is."""
    wish = Wish.said({**words, "format": format_of(out, words.get("format"))})
    columns = (TextColumn("rows"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as shown:
        bar = shown.add_task("", total=None)
        done = export(
            place, project.id, wish, out, told=lambda rows, most: shown.update(bar, completed=rows, total=most)
        )
    where = manifest_of(out, is_folder=wish.format.is_folder)
    console.print(f"{done.rows} rows written to {escape(str(out))}", soft_wrap=True, highlight=False)
    console.print(f"{_summary(done.manifest)}; the manifest: {escape(str(where))}", soft_wrap=True, highlight=False)
    return done, where


def _summary(manifest: Mapping[str, Any]) -> str:
    weights = manifest["weights"]
    parts = [f"worth {weights['effective_sample_size']:.0f} equally weighted labels"]
    if weights["share_capped"] is not None:
        parts.append(f"{weights['share_capped']:.0%} of the drawn weights at their cap")
    if left := manifest.get("left_out"):
        parts.append(f"{len(left)} left out, as their images cannot be read")
    if as_of := manifest.get("as_of"):
        parts.append(f"{as_of['changed_since']} labels changed since then, {as_of['taken_back']} taken back")
    return ", ".join(parts)
