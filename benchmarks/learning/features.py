"""Scoring a million kept descriptions again, next to a bare linear layer and softmax over the same array in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

import iwes
from benchmarks.learning.clock import in_turns, seconds
from benchmarks.learning.options import Options
from benchmarks.learning.report import Goal, Report
from models import networks
from models.classifier import Classifier
from models.device import choose
from models.learner import Examples
from models.network_learner import HeadLearner
from models.recipe import HEAD
from models.shelf import Key, Shelf, key_of
from models.shelf_view import View

NETWORK, FEATURES, CLASSES = "resnet18", 512, 10
AT_ONCE = 20_000


def run(options: Options, report: Report) -> None:
    count, repeats = options.sized(1_000_000, 50_000), options.sized(5, 1)
    options.scratch.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=options.scratch) as folder:
        report.progress(f"making {count:,} rows of {FEATURES}")
        array = _rows(count)
        shelf, keys = _filled(Path(folder), array)
        report.progress("putting the view together")
        view = shelf.view(keys)  # the first one also reads the keys
        took = seconds(lambda: shelf.view(keys))
        report.row(f"view of {count:,} rows from their keys", f"{took:.2f} s")
        found = in_turns(_ways(_head(array), array, view, shelf, keys), repeats=repeats)
    bare = found["bare"]
    peer = f"bare linear + softmax in memory {bare:.2f} s"
    for way, goal in _SHOWN.items():
        report.row(f"{count:,} × {FEATURES}: {way}", f"{found[way]:.2f} s", peer, ratio=bare / found[way], goal=goal)
    softmax, entropy = found[PROBABILITIES] - found[LOGITS], found[ENTROPY] - found[PROBABILITIES]
    report.remark(
        f"Of the real path, the head's logits take {found[LOGITS]:.2f} s, float64 probabilities {softmax:.2f} s more "
        f"and the entropy {entropy:.2f} s more."
    )


LOGITS = "shelf → logits"
SOFTMAX = "shelf → logits → float32 softmax"
SAME_HEAD = "the same head over memory → softmax, in one go"
PROBABILITIES = "shelf → Classifier.probabilities"
ENTROPY = "shelf → Classifier.probabilities → entropy"
SHUFFLED = "shelf, rows in random order → logits → float32 softmax"
_SHOWN: dict[str, Goal | None] = {
    SOFTMAX: Goal(least=0.80),
    LOGITS: None,
    SAME_HEAD: None,
    PROBABILITIES: None,
    ENTROPY: None,
    SHUFFLED: None,
}


def _ways(
    classifier: Classifier, array: NDArray[np.float32], view: View, shelf: Shelf, keys: list[Key]
) -> dict[str, Callable[[], object]]:
    fitted, rows = classifier.fitted, torch.from_numpy(array)
    head: nn.Module = fitted.module  # type: ignore[attr-defined]
    layer: nn.Linear = head.linear  # type: ignore[assignment]
    order = np.random.default_rng(2).permutation(len(keys))
    shuffled = shelf.view([keys[place] for place in order])

    def bare() -> None:
        with torch.inference_mode():
            functional.linear(rows, layer.weight, layer.bias).softmax(dim=1)

    def same_head() -> None:
        with torch.inference_mode():
            head(rows).softmax(dim=1)

    return {
        "bare": bare,
        SOFTMAX: lambda: torch.from_numpy(fitted.logits(view)).softmax(dim=1),
        LOGITS: lambda: fitted.logits(view),
        SAME_HEAD: same_head,
        PROBABILITIES: lambda: classifier.probabilities(view),
        ENTROPY: lambda: iwes.entropy(classifier.probabilities(view)),
        SHUFFLED: lambda: torch.from_numpy(fitted.logits(shuffled)).softmax(dim=1),
    }


def _rows(count: int) -> NDArray[np.float32]:
    made = np.empty((count, FEATURES), np.float32)
    rng = np.random.default_rng(0)
    for start in range(0, count, AT_ONCE):
        part = made[start : start + AT_ONCE]
        rng.standard_normal(out=part, dtype=np.float32)
    return made


def _filled(folder: Path, array: NDArray[np.float32]) -> tuple[Shelf, list[Key]]:
    shelf = Shelf(folder, (FEATURES,), np.float32, most_bytes=2 * array.nbytes)
    keys = [key_of(str(number)) for number in range(len(array))]
    for start in range(0, len(array), AT_ONCE):
        shelf.put(keys[start : start + AT_ONCE], array[start : start + AT_ONCE])
    return shelf, keys


def _head(array: NDArray[np.float32]) -> Classifier:
    """Trained for a moment on a few of the rows; what it has learned does not matter to its speed."""
    learner = HeadLearner(
        nn.Identity,
        lambda classes: networks.head(NETWORK, classes=classes),
        frozen="benchmark",
        input_size=networks.input_size(NETWORK),
        recipe=HEAD,
        compute=choose("cpu"),
    )
    rows = array[:90]
    examples = Examples(rows, np.arange(len(rows)) % CLASSES, np.ones(len(rows), np.float32), CLASSES)
    return Classifier(
        learner, learner.fit(examples, seed=0), classes=[str(number) for number in range(CLASSES)], version="benchmark"
    )
