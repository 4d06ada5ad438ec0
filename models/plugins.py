"""Models that other packages bring, found by the entry points they declare. Needs no torch."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

GROUP = "iwes.models"
"""`name = package.module:factory`; the factory is called with `weights_folder` and `device` and returns a `Learner`."""


def find(name: str) -> EntryPoint | None:
    return next(iter(entry_points(group=GROUP, name=name)), None)


def names() -> list[str]:
    return sorted(entry_points(group=GROUP).names)
