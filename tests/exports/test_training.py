"""Training scripts that use an export, each as in the documentation, on real digits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import iwes
from backend.exports.export import export
from backend.exports.wish import Format, Weights, Wish
from jobs.workplace import Workplace
from store.database import Store
from tests.exports.pictures import pictures_project

pytestmark = pytest.mark.slow

TRAINED, JUDGED = 400, 300


@pytest.fixture
def digits() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    return load_digits(return_X_y=True)


@pytest.fixture
def exported(
    store: Store, place: Workplace, tmp_path: Path, digits: tuple[np.ndarray, np.ndarray]
) -> dict[Format, Path]:
    pixels, truth = digits
    project = pictures_project(
        store, tmp_path / "photos", pixels[:TRAINED], truth[:TRAINED].tolist(), list(map(str, range(10)))
    )
    made = {}
    for kind in (Format.IMAGEFOLDER, Format.HUGGINGFACE):
        made[kind] = tmp_path / str(kind)
        export(place, project.id, Wish(kind, weights=Weights.MEAN1), made[kind])
    return made


def test_scikit_learn_trains_with_the_weights(
    exported: dict[Format, Path], digits: tuple[np.ndarray, np.ndarray]
) -> None:
    from PIL import Image
    from sklearn.linear_model import LogisticRegression

    loaded = iwes.load_training_set(exported[Format.IMAGEFOLDER])
    x = np.stack([np.asarray(Image.open(path), dtype=float).ravel() / 15 for path in loaded.images])
    model = LogisticRegression(max_iter=2000).fit(x, loaded.labels, sample_weight=loaded.weights)
    assert np.isclose(loaded.weights.mean(), 1.0)
    pixels, truth = digits
    assert model.score(pixels[-JUDGED:], truth[-JUDGED:]) > 0.85


def test_torch_trains_with_the_weights(exported: dict[Format, Path], digits: tuple[np.ndarray, np.ndarray]) -> None:
    import torch
    from torch.utils.data import DataLoader

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 64, 10))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    images = iwes.load_training_set(exported[Format.HUGGINGFACE]).torch()
    for _ in range(20):
        for x, y, w in DataLoader(images, batch_size=64, shuffle=True):
            loss = (w * torch.nn.functional.cross_entropy(model(x), y, reduction="none")).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    assert _accuracy(model, digits) > 0.85


def test_hugging_face_trains_with_the_weights(
    exported: dict[Format, Path], digits: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    datasets = pytest.importorskip("datasets")
    import torch
    from torch.utils.data import DataLoader

    torch.manual_seed(0)
    model = torch.nn.Linear(64, 10)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    loaded = datasets.load_dataset(
        str(exported[Format.HUGGINGFACE]), split="train", cache_dir=str(tmp_path / "cache")
    ).select_columns(["image", "label", "weight"])
    for _ in range(20):
        for some in DataLoader(loaded.with_format("torch"), batch_size=64, shuffle=True):
            answers = model(some["image"].reshape(-1, 64) / 255)
            loss = (some["weight"] * torch.nn.functional.cross_entropy(answers, some["label"], reduction="none")).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    pixels, truth = digits
    with torch.no_grad():
        answers = model(torch.tensor(pixels[-JUDGED:] * 15 / 255, dtype=torch.float32)).argmax(1).numpy()
    assert (answers == truth[-JUDGED:]).mean() > 0.85


def test_hugging_face_reads_images_classes_and_weights(exported: dict[Format, Path], tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    folder = str(exported[Format.HUGGINGFACE])
    loaded = datasets.load_dataset(folder, split="train", cache_dir=str(tmp_path / "cache"))
    assert isinstance(loaded.features["label"], datasets.ClassLabel)
    assert loaded.features["label"].names == list(map(str, range(10)))
    assert isinstance(loaded.features["image"], datasets.Image)
    again = iwes.load_training_set(exported[Format.HUGGINGFACE])
    assert loaded["label"][:] == again.labels.tolist()
    assert loaded["weight"][:] == again.weights.tolist()
    assert loaded[0]["image"].size == (8, 8)
    by_parquet = datasets.load_dataset(
        "parquet", data_files=f"{folder}/data/*.parquet", split="train", cache_dir=str(tmp_path / "cache")
    )
    assert by_parquet.features == loaded.features
    as_folder = datasets.load_dataset(
        "imagefolder", data_dir=str(exported[Format.IMAGEFOLDER]), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert len(as_folder) == TRAINED
    assert sorted(as_folder["weight"][:]) == sorted(again.weights.tolist())


def test_lightning_trains_with_the_weights(
    exported: dict[Format, Path], digits: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    lightning = pytest.importorskip("lightning")
    import torch
    from torch.utils.data import DataLoader

    class Model(lightning.LightningModule):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 64, 10))

        def training_step(self, batch: Any, _: int) -> torch.Tensor:
            x, y, w = batch
            return (w * torch.nn.functional.cross_entropy(self.net(x), y, reduction="none")).mean()

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.Adam(self.parameters(), lr=0.02)

    lightning.seed_everything(0)
    model = Model()
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "accelerator": "cpu"}
    trainer = lightning.Trainer(max_epochs=20, default_root_dir=tmp_path, enable_model_summary=False, **quiet)
    images = iwes.load_training_set(exported[Format.IMAGEFOLDER]).torch()
    trainer.fit(model, DataLoader(images, batch_size=64, shuffle=True))
    assert _accuracy(model.net, digits) > 0.85


def _accuracy(model: Any, digits: tuple[np.ndarray, np.ndarray]) -> float:
    import torch

    pixels, truth = digits
    grey = torch.tensor(pixels[-JUDGED:] * 15 / 255, dtype=torch.float32).reshape(-1, 1, 8, 8).repeat(1, 3, 1, 1)
    with torch.no_grad():
        return float((model(grey).argmax(1).numpy() == truth[-JUDGED:]).mean())
