"""What Label Studio really holds, read from its own database: its listings leave out tasks that lost count."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

BUSY_SECONDS = 30


@dataclass(frozen=True)
class Held:
    """One annotation."""

    task: int
    choice: str | None
    skipped: bool
    created_at: datetime
    queue: str | None
    """The queue its task was served from, as Label Studio noted it down at the submit."""


@dataclass(frozen=True)
class StudioSide:
    annotations: dict[int, Held]
    data: dict[int, dict[str, Any]]
    """By task."""
    served: str | None
    """The queue annotators are on."""
    queues: dict[str, Counter[int]]
    """How often each task is in each queue."""
    miscounted: int
    """Tasks that Label Studio believes to have fewer or more annotations than they have."""


def read(database: Path, project: int) -> StudioSide:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=BUSY_SECONDS)) as base:
        base.execute("BEGIN")
        rows = base.execute(
            "SELECT id, task_id, result, was_cancelled, created_at, prediction FROM task_completion "
            "WHERE project_id = ?",
            (project,),
        )
        annotations = {row[0]: _held(*row[1:]) for row in rows}
        tasks = base.execute(
            "SELECT id, data, total_annotations + cancelled_annotations FROM task WHERE project_id = ?", (project,)
        ).fetchall()
        (served,) = base.execute("SELECT model_version FROM project WHERE id = ?", (project,)).fetchone()
        queues: dict[str, Counter[int]] = {}
        for version, task in base.execute(
            "SELECT model_version, task_id FROM prediction WHERE project_id = ?", (project,)
        ):
            queues.setdefault(version, Counter())[task] += 1
    counted = Counter(held.task for held in annotations.values())
    return StudioSide(
        annotations=annotations,
        data={task: json.loads(data) for task, data, _ in tasks},
        served=served or None,
        queues=queues,
        miscounted=sum(counted[task] != believed for task, _, believed in tasks),
    )


def _held(task: int, result: str, cancelled: int, created_at: str, prediction: str | None) -> Held:
    regions = json.loads(result or "[]")
    served = json.loads(prediction or "{}") or {}
    return Held(
        task=task,
        choice=None if cancelled or not regions else regions[0]["value"]["choices"][0],
        skipped=bool(cancelled),
        created_at=datetime.fromisoformat(created_at).replace(tzinfo=UTC),
        queue=served.get("model_version"),
    )
