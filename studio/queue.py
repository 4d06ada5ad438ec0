"""The order in which Label Studio serves tasks: one empty prediction per task, whose score is its rank.

With uncertainty sampling, Label Studio serves the unlabelled tasks that carry a prediction of the project's
`model_version`, lowest score first. So a queue is a made-up model version, and switching queues is one PATCH.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from studio.errors import QueueIncomplete
from studio.projects import StudioProject

PREFIX = "iwes-queue-"
"""Predictions of versions that begin so are ours to delete."""


def upload(project: StudioProject, name: str, task_ids: Sequence[int]) -> None:
    """Stores the queue without serving it yet. Safe to repeat: what an earlier try left behind is removed first."""
    there = versions(project)
    if there.get(name) == len(task_ids):
        return
    if name in there:
        delete(project, name)
    sent = [
        {"task": task_id, "result": [], "score": (rank + 1) / (len(task_ids) + 1), "model_version": name}
        for rank, task_id in enumerate(task_ids)
    ]
    answer = project.client.post(f"/api/projects/{project.id}/import/predictions", sent)
    created = answer.get("created") if isinstance(answer, dict) else None
    if created != len(sent):
        delete(project, name)
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
    project.change(model_version=name, sampling="Uncertainty sampling")
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
