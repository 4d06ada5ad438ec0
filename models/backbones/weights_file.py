"""Reads a file of weights into a backbone. No file can run code: only tensors are ever read."""

from __future__ import annotations

import pickle
import re
from collections.abc import Sequence
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from models.backbones.backbone import Backbone

NAMED = 3  # tensors in a message, of which there may be hundreds

# The outputs that GoogLeNet and Inception have for training only.
_AUXILIARY = ("AuxLogits.", "aux1.", "aux2.")
# DenseNet's published files are older than the rule that no module's name has a dot: norm.1 is norm1 today.
_DENSENET = re.compile(r"(denselayer\d+\.(?:norm|conv))\.([12]\.)")


class BadWeights(ValueError):
    """A file of weights that does not fit the backbone; the message names the file and what is wrong with it."""


def load(path: Path, backbone: Backbone) -> None:
    """Replace all of the backbone's weights by those of the file, as float32. Raises BadWeights.

    The file has the names of the whole classifier's state dict; its classification layer may be missing.
    """
    tensors = _read(path)
    for name in [name for name in tensors if name.startswith((f"{backbone.cut}.", *_AUXILIARY))]:
        del tensors[name]
    try:
        outcome = backbone.body.load_state_dict(tensors, strict=False, assign=True)
    except RuntimeError as error:
        reasons = [line.strip() for line in str(error).splitlines()[1:]]
        raise BadWeights(f"{path} does not fit: {_first(reasons)}") from error
    wrong = {"missing": outcome.missing_keys, "unexpected": outcome.unexpected_keys}
    if any(wrong.values()):
        named = "; ".join(f"{kind}: {_first(found)}" for kind, found in wrong.items() if found)
        raise BadWeights(f"{path} holds weights of another network: {named}")
    backbone.body.float()


def _read(path: Path) -> dict[str, Tensor]:
    """The file's tensors by name."""
    try:
        if path.suffix == ".safetensors":
            tensors = safetensors.torch.load_file(path)
        else:
            tensors = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, SafetensorError, pickle.UnpicklingError, EOFError, RuntimeError, ValueError, KeyError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BadWeights(f"{path} holds no weights that can be read: {reason}") from error
    if not isinstance(tensors, dict) or not all(isinstance(value, Tensor) for value in tensors.values()):
        raise BadWeights(f"{path} holds no state dict: tensors by name and nothing else")
    for old in [name for name in tensors if _DENSENET.search(name)]:
        tensors[_DENSENET.sub(r"\1\2", old)] = tensors.pop(old)
    return tensors


def _first(found: Sequence[str]) -> str:
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return ", ".join(found[:NAMED]) + more
