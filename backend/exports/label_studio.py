"""Tasks as Label Studio imports them, each with its settled class as an annotation and its weights in its data."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from backend.exports.record import OURS, Line, Lines, as_json, read_json
from store.tables import Project
from studio.labels import ImageClasses

_ELSEWHERE = ("task", "image", "class", "data")
"""Columns that have a place of their own in a task."""


def write_label_studio(path: Path, lines: Iterable[Lines], project: Project) -> None:
    config = ImageClasses(project.control, project.target, project.field, tuple(project.classes))
    with path.open("wb") as file:
        before = b"[\n"
        for some in lines:
            for line in some:
                file.write(before + as_json(_task(line, config)))
                before = b",\n"
        file.write(b"\n]\n" if before == b",\n" else b"[]\n")


def _task(line: Line, config: ImageClasses) -> dict[str, Any]:
    """Without who annotated it: Label Studio refuses an import that names people it does not know. They are in
    `al_annotators`."""
    record = line.record
    weights = {
        f"{OURS}{name}": value for name, value in record.items() if name not in _ELSEWHERE and value not in (None, [])
    }
    image = read_json(line.row.data).get(config.field)
    annotation = {"result": config.result_of(line.row.class_name), "was_cancelled": False, "ground_truth": False}
    return {
        "id": line.row.task,
        "data": {config.field: image, **record["data"], **weights},
        "annotations": [annotation],
    }
