"""Moments, spans and jobs in words."""

from __future__ import annotations

from datetime import datetime

from jobs import logs
from store.tables import now

LONGEST_CELL = 40


def ago(moment: datetime | None) -> str:
    if moment is None:
        return "never"
    seconds = (now() - moment).total_seconds()
    return "just now" if seconds < 10 else f"{span(seconds)} ago"


def span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 36 * 3600:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 86400:.0f} days"


def job_name(job_id: str) -> str:
    """“Train f, subset auto, round 2”, out of an id that is made of exactly that."""
    facts = logs.of_job(job_id)
    parts = job_id.split("-")
    twin = parts[-1] if parts[-1] in ("f", "g") else ""
    kind = parts[-2] if twin and len(parts) > 1 else parts[-1]
    said = [f"{kind.capitalize()} {twin}".strip()]
    if facts.get("subset"):
        said.append(f"subset {facts['subset']}")
    if facts.get("round") is not None:
        said.append(f"round {facts['round']}")
    return ", ".join(said)


def cell(value: object) -> str:
    """A value as a table shows it."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M")
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value) if len(str(value)) <= LONGEST_CELL else f"{str(value)[:LONGEST_CELL]}…"


def share(value: float) -> str:
    """With a decimal where a whole percentage would say too little."""
    return f"{value:.1%}" if 0 < value < 0.1 or 0.995 < value < 1 else f"{value:.0%}"
