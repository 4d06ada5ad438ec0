"""The worked example of a model of one's own, as its reader would install it: docs/own_model."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch

from models import card as cards
from models import checkpoint
from models.card import Origin
from models.classifier import Classifier
from models.learner import Examples, Learner
from models.plan import Plan
from models.workshop import Workshop, way_of

pytestmark = pytest.mark.slow

PACKAGE = Path(__file__).parents[2] / "docs" / "own_model"
NAMES = ["a", "b", "c", "never seen"]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The package on the path with the entry points its pyproject.toml declares, as pip leaves them."""
    points: dict[str, str] = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]["entry-points"][
        "iwes.models"
    ]
    info = tmp_path / "own_model-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-model\nVersion: 0.1.0\n")
    lines = "\n".join(f"{name} = {value}" for name, value in points.items())
    (info / "entry_points.txt").write_text(f"[iwes.models]\n{lines}\n")
    monkeypatch.syspath_prepend(str(PACKAGE))
    monkeypatch.syspath_prepend(str(tmp_path))
    return points


def pictures(count: int, *, seed: int, size: int = 224) -> tuple[np.ndarray, np.ndarray]:
    """Stripes: across, along, or none."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    stripes = (np.arange(size) // 8 % 2 * 160).astype(np.int64)
    images = rng.integers(0, 90, (count, 3, size, size))
    images[labels == 0] += stripes[None, None, :, None]
    images[labels == 1] += stripes[None, None, None, :]
    return images.astype(np.uint8), labels.astype(np.int64)


def learns_and_comes_back(
    name: str, learner: Learner, folder: Path, workshop: Workshop, *, right_of_6: int = 6
) -> Classifier:
    images, labels = pictures(18, seed=1, size=learner.input_size)
    examples = Examples(learner.describe(images), labels, np.ones(18, np.float32), len(NAMES))
    classifier = Classifier(learner, learner.fit(examples, seed=3), classes=NAMES, version="v")
    checkpoint.save(folder, classifier, Origin(name, way_of(name, learner), 3, 0, "", classifier.fitted.metrics))
    back = checkpoint.load(folder, workshop)
    unseen, truth = pictures(6, seed=2, size=learner.input_size)
    probabilities = back.probabilities(back.learner.describe(unseen))
    assert (probabilities.argmax(axis=1) == truth).sum() >= right_of_6
    assert (probabilities[:, 3] < 0.05).all()
    assert cards.read(folder).way == "own"
    return back


def test_logistic_regression_on_features_learns_is_kept_and_comes_back(
    installed: dict[str, str], tmp_path: Path, workshop: Workshop
) -> None:
    assert "logistic-on-lite0" in installed
    learner = workshop.learner("logistic-on-lite0", Plan())
    back = learns_and_comes_back("logistic-on-lite0", learner, tmp_path / "model", workshop)
    assert set(back.fitted.tensors()) == {"mean", "scale", "coefficients", "intercepts"}


@pytest.mark.parametrize("classes", [[0], [0, 2]])
def test_logistic_regression_copes_with_one_or_two_classes_seen(
    installed: dict[str, str], workshop: Workshop, classes: list[int]
) -> None:
    learner = workshop.learner("logistic-on-lite0", Plan())
    images, labels = pictures(6, seed=1)
    some = np.isin(labels, classes)
    rows = learner.describe(images[some])
    weights = np.ones(len(rows), np.float32)
    fitted = learner.fit(Examples(rows, labels[some], weights, len(NAMES)), seed=1)
    assert (fitted.logits(rows).argmax(axis=1) == labels[some]).all()


def test_a_timm_backbone_learns_is_kept_and_comes_back(
    installed: dict[str, str], tmp_path: Path, workshop: Workshop
) -> None:
    timm = pytest.importorskip("timm")
    safetensors = pytest.importorskip("safetensors.torch")
    workshop.weights_folder.mkdir(parents=True)
    torch.manual_seed(0)
    body = timm.create_model("mobilenetv3_small_100", pretrained=False)
    safetensors.save_file(body.state_dict(), workshop.weights_folder / "mobilenetv3_small_100.safetensors")
    learner = workshop.learner("timm-mobilenet", Plan())
    learns_and_comes_back("timm-mobilenet", learner, tmp_path / "model", workshop, right_of_6=5)
