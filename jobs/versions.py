"""What a model is called, and where its checkpoint stands. No torch is needed to know either."""

from __future__ import annotations

from pathlib import Path

from jobs.settings import Settings
from store.tables import Project, Subset

UNTRAINED = "iwes-untrained"
"""The version reported before the first training; like every model's, it differs from every queue's name."""


def version(round_number: int, subset: Subset | None = None, *, twin: bool = False) -> str:
    return f"iwes-{subset.name if subset else 'model'}-{round_number}{'-g' if twin else ''}"


def folder(settings: Settings, project: Project, model_version: str) -> Path:
    return settings.models_folder / str(project.id) / model_version
