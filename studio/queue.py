"""The order in which Label Studio serves tasks: one empty prediction per task, whose score is its rank.

With uncertainty sampling, Label Studio serves the unlabelled tasks that carry a prediction of the project's
`model_version`, lowest score first. So a queue is a made-up model version, and switching queues is one PATCH.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from studio.errors import QueueIncomplete
from studio.projects import StudioProject

SAMPLING = "Uncertainty sampling"
PREFIX = "iwes-queue-"
"""Predictions of versions that begin so are ours to delete."""


def upload(project: StudioProject, name: str, scores: Mapping[int, float]) -> int:
    """Stores the queue without serving it yet: each task once, under its score. What is there already, from a try that
    was cut off or before somebody meddled with it, is completed: entries that are missing are added, doubled ones are
    removed. Returns how many it took; nothing is deleted that annotators may have on their screens."""
    held = versions(project).get(name, 0)
    if held == len(scores):
        return 0
    entries = _entries(project, name, list(scores)) if held else {}
    missing = [task_id for task_id in scores if task_id not in entries]
    extra = [entry for found in entries.values() for entry in found[1:]]
    for entry in extra:
        project.client.delete(f"/api/predictions/{entry}/")
    if missing:
        _add(project, name, {task_id: scores[task_id] for task_id in missing})
    return len(missing) + len(extra)


def _entries(project: StudioProject, name: str, task_ids: Sequence[int]) -> dict[int, list[int]]:
    """Ids of the queue's predictions by task, the oldest first."""
    found = {
        task_id: sorted(int(p["id"]) for p in predictions if p.get("model_version") == name)
        for task_id, predictions in project.predictions_of(task_ids).items()
    }
    return {task_id: ids for task_id, ids in found.items() if ids}


def _add(project: StudioProject, name: str, scores: Mapping[int, float]) -> None:
    sent = [{"task": task_id, "result": [], "score": score, "model_version": name} for task_id, score in scores.items()]
    answer = project.client.post(f"/api/projects/{project.id}/import/predictions", sent)
    created = answer.get("created") if isinstance(answer, dict) else None
    if created != len(sent):
        raise QueueIncomplete(
            f"Label Studio stored {created} of {len(sent)} entries of the queue {name}; "
            "annotators stay on the previous queue and publishing is tried again"
        )


def serve(project: StudioProject, name: str, *, previous: str | None) -> None:
    """Switches annotators to the queue, then removes older ones.

    Two must stay. The one being served: without it Label Studio forgets `model_version` and serves at random. And the
    previous one: the editor submits the id of the prediction its task was opened with, and Label Studio refuses the
    submit (400, or 500 where the two cross) if that prediction is gone; annotators who had a task open during the
    switch would lose their label.
    """
    project.change(model_version=name, sampling=SAMPLING)
    for other in versions(project):
        if _number(other) < _number(name) and other != previous:
            delete(project, other)


def clear(project: StudioProject) -> None:
    """Removes every queue of ours, also one left behind by a store that is no more."""
    for name in versions(project):
        if name.startswith(PREFIX):
            delete(project, name)


def versions(project: StudioProject) -> dict[str, int]:
    """How many predictions of each version the project holds."""
    answer = project.client.get(f"/api/projects/{project.id}/model-versions/")
    return {str(name): int(count) for name, count in answer.items()} if isinstance(answer, dict) else {}


def _number(name: str) -> float:
    """The number in a queue's name; infinite for what is not ours, which no queue is newer than."""
    text = name.removeprefix(PREFIX)
    return int(text) if name.startswith(PREFIX) and text.isdigit() else math.inf


def delete(project: StudioProject, name: str) -> None:
    project.client.delete(f"/api/projects/{project.id}/model-versions/", {"model_version": name})
