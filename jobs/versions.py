"""What a model is called, and where its checkpoint stands. No torch is needed to know either."""

from __future__ import annotations

from pathlib import Path

from jobs.settings import Settings
from store.tables import Project

UNTRAINED = "iwes-untrained"
"""The version reported before the first training; like every model's, it differs from every queue's name."""


def version(round_number: int) -> str:
    return f"iwes-model-{round_number}"


def folder(settings: Settings, project: Project, model_version: str) -> Path:
    return settings.models_folder / str(project.id) / model_version
