"""Imports torchvision's models without torch's compiler, which none of those that classify images uses.

Importing torchvision takes 6 seconds, 5 of them for the compiler, of which it wants to ask one thing should someone
detect objects. Here that question waits until it is asked.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

_COMPILER = "torch._dynamo.utils"


def import_models() -> Any:
    """The module torchvision.models."""
    if _COMPILER in sys.modules:
        return importlib.import_module("torchvision.models")
    stand_in = sys.modules[_COMPILER] = _StandIn(_COMPILER)
    try:
        return importlib.import_module("torchvision.models")
    finally:
        if sys.modules.get(_COMPILER) is stand_in:
            del sys.modules[_COMPILER]


class _StandIn(ModuleType):
    """Answers for the compiler while torchvision is imported; anything unforeseen brings in the compiler itself."""

    @staticmethod
    def is_compile_supported(device_type: str) -> Any:
        return importlib.import_module(_COMPILER).is_compile_supported(device_type)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules.get(_COMPILER) is self:
            del sys.modules[_COMPILER]
        return getattr(importlib.import_module(_COMPILER), name)
