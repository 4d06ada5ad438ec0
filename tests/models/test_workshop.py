"""Learners of every kind come out of the workshop, and what they learnt comes back from its checkpoint."""

from __future__ import annotations

import logging
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch

from models import card as cards
from models import checkpoint, frozen, networks
from models.card import BadCheckpoint, Origin
from models.classifier import Classifier
from models.learner import Examples, Learner
from models.network_learner import FullLearner, HeadLearner
from models.plan import Plan
from models.workshop import BadLearner, Workshop, way_of
from tests.models.conftest import Labelled, bars, examples_of

NAMES = ["left", "middle", "right"]
OWN = """
    import numpy as np

    class Mean:
        input_size = 28
        frozen = FROZEN

        def describe(self, images):
            return images.mean(axis=(1, 2)).astype(np.float32)

        def fit(self, examples, *, seed, start=None, on_progress=print):
            rows = examples.rows[:]
            centres = np.stack([rows[examples.labels == c].mean(axis=0) for c in range(examples.classes)])
            return Centres(centres)

        def restore(self, tensors, *, classes):
            return Centres(tensors["centres"])

    class Centres:
        metrics = {}

        def __init__(self, centres):
            self.centres = centres

        def logits(self, rows):
            return -((rows[:][:, None] - self.centres) ** 2).sum(axis=2) / 100

        def tensors(self):
            return {"centres": self.centres}

    def make(*, weights_folder, device):
        return Mean()

    def broken(*, weights_folder, device):
        raise OSError("no room")
"""


def rows_for(learner: Learner, data: Labelled) -> Examples:
    """The training set as this learner reads it."""
    images = examples_of(data)
    return images if learner.frozen is None else replace(images, rows=learner.describe(data["images"]))


def kept(folder: Path, learner: Learner, network: str, data: Labelled) -> Classifier:
    classifier = Classifier(learner, learner.fit(rows_for(learner, data), seed=1), classes=NAMES, version="v")
    checkpoint.save(folder, classifier, Origin(network, way_of(network, learner), 1, 0, "", {}))
    return classifier


@pytest.fixture
def own_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package with two entry points, as pip would have left it."""
    (tmp_path / "own_mean.py").write_text(textwrap.dedent(OWN.replace("FROZEN", "'mean-1'")))
    info = tmp_path / "own_mean-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-mean\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[iwes.models]\nmean = own_mean:make\nbroken = own_mean:broken\n")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a file changed within a second would not be compiled anew
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "own_mean", raising=False)
    return tmp_path


def test_small_cnn_is_trained_in_full(workshop: Workshop) -> None:
    learner = workshop.learner("small-cnn", Plan())
    assert isinstance(learner, FullLearner)
    assert way_of("small-cnn", learner) == "full"


def test_a_head_on_a_frozen_backbone_comes_back_with_the_backbone_it_was_trained_on(
    tmp_path: Path, workshop: Workshop, training_set: Labelled, unseen: Labelled
) -> None:
    learner = workshop.learner("small-cnn", Plan(way="head"))
    assert isinstance(learner, HeadLearner)
    classifier = kept(tmp_path / "model", learner, "small-cnn", training_set)
    back = checkpoint.load(tmp_path / "model", Workshop(tmp_path / "nowhere", workshop.frozen_folder, "cpu"))
    assert back.learner.frozen == learner.frozen
    described = back.learner.describe(unseen["images"])
    np.testing.assert_array_equal(described, learner.describe(unseen["images"]))
    np.testing.assert_array_equal(back.probabilities(described), classifier.probabilities(described))
    assert (back.probabilities(described).argmax(axis=1) == unseen["labels"]).mean() > 0.9


def test_the_weights_of_a_head_do_not_hold_its_backbone(
    tmp_path: Path, workshop: Workshop, training_set: Labelled
) -> None:
    learner = workshop.learner("small-cnn", Plan(way="head"))
    kept(tmp_path / "model", learner, "small-cnn", training_set)
    card = cards.read(tmp_path / "model")
    assert card.way == "head"
    assert card.frozen == learner.frozen
    tensors = safetensors.torch.load_file(tmp_path / "model" / card.weights_name)
    assert set(tensors) == set(networks.head("small-cnn", classes=3).state_dict())


def test_many_heads_share_one_backbone_on_disk(tmp_path: Path, workshop: Workshop, training_set: Labelled) -> None:
    for number in range(3):
        learner = workshop.learner("small-cnn", Plan(way="head"))
        kept(tmp_path / f"model-{number}", learner, "small-cnn", training_set)
    assert len(list(workshop.frozen_folder.glob("*.safetensors"))) == 1


@pytest.mark.parametrize("damage", ["gone", "changed", "torn"])
def test_a_backbone_that_is_gone_or_damaged_is_named(
    tmp_path: Path, workshop: Workshop, training_set: Labelled, damage: str
) -> None:
    kept(tmp_path / "model", workshop.learner("small-cnn", Plan(way="head")), "small-cnn", training_set)
    (file,) = workshop.frozen_folder.glob("*.safetensors")
    content = bytearray(file.read_bytes())
    if damage == "gone":
        file.unlink()
    elif damage == "changed":
        content[-5] ^= 1
        file.write_bytes(content)
    else:
        file.write_bytes(content[: len(content) // 2])
    frozen.load.cache_clear()  # as in a process that has not loaded it yet
    back = checkpoint.load(tmp_path / "model", workshop)
    with pytest.raises(BadCheckpoint, match=file.name):
        back.learner.describe(training_set["images"])


def test_f_and_g_differ_by_their_seed_alone(workshop: Workshop, training_set: Labelled, unseen: Labelled) -> None:
    learner = workshop.learner("small-cnn", Plan())
    answers = [learner.fit(examples_of(training_set), seed=seed).logits(unseen["images"]) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(answers[0], answers[1])
    assert np.abs(answers[0] - answers[2]).max() > 0.1


def test_a_warm_start_begins_where_the_last_model_ended(workshop: Workshop, training_set: Labelled) -> None:
    learner = workshop.learner("small-cnn", Plan())
    examples = examples_of(training_set)
    last = learner.fit(examples, seed=1)
    warm = learner.fit(examples, seed=2, start=last)
    assert warm.metrics["epochs"] < last.metrics["epochs"]
    assert warm.metrics["loss"] < 0.1


def test_a_rate_left_open_is_chosen_once_and_then_given(workshop: Workshop, training_set: Labelled) -> None:
    plan = Plan(way="head", learning_rate="choose")
    chosen = workshop.learner("small-cnn", plan)
    examples = rows_for(chosen, training_set)
    rate = chosen.fit(examples, seed=1).metrics["learning_rate"]
    assert rate in (0.001, 0.002, 0.005, 0.01, 0.1)
    again = workshop.learner("small-cnn", plan, learning_rate=0.003)
    assert again.fit(examples, seed=1).metrics["learning_rate"] == 0.003


def test_a_backbone_without_weights_is_trained_in_full_after_a_warning(
    workshop: Workshop, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from models import pretrained

    real = pretrained.find
    monkeypatch.setattr(pretrained, "find", lambda name, folder: real(name, folder, download=False))
    with caplog.at_level(logging.WARNING):
        learner = workshop.learner("resnet18", Plan())
    assert isinstance(learner, FullLearner)
    assert "random weights" in caplog.text


def test_images_of_another_size_are_refused_before_training(workshop: Workshop) -> None:
    wrong = bars(6, seed=1)
    wrong["images"] = wrong["images"][:, :, :20, :20]
    with pytest.raises(ValueError, match=r"uint8 of shape \(n, 3, 28, 28\)"):
        workshop.learner("small-cnn", Plan()).fit(examples_of(wrong), seed=1)


@pytest.mark.usefixtures("own_package")
def test_a_model_of_another_package_is_found_trained_kept_and_restored(
    tmp_path: Path, workshop: Workshop, training_set: Labelled, unseen: Labelled
) -> None:
    learner = workshop.learner("mean", Plan())
    assert way_of("mean", learner) == "own"
    classifier = kept(tmp_path / "model", learner, "mean", training_set)
    back = checkpoint.load(tmp_path / "model", workshop)
    rows = learner.describe(unseen["images"])
    np.testing.assert_array_equal(back.probabilities(rows), classifier.probabilities(rows))


def test_a_model_whose_frozen_part_has_changed_is_not_trusted(
    tmp_path: Path, workshop: Workshop, training_set: Labelled, own_package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(tmp_path / "model", workshop.learner("mean", Plan()), "mean", training_set)
    (own_package / "own_mean.py").write_text(textwrap.dedent(OWN.replace("FROZEN", "'mean-2'")))
    monkeypatch.delitem(sys.modules, "own_mean")
    with pytest.raises(BadCheckpoint, match="'mean' describes images otherwise now"):
        checkpoint.load(tmp_path / "model", workshop)


@pytest.mark.usefixtures("own_package")
def test_a_model_that_cannot_be_made_says_why(workshop: Workshop) -> None:
    with pytest.raises(BadLearner, match="'broken' of own_mean:broken cannot be made: no room"):
        workshop.learner("broken", Plan())


def test_a_model_whose_package_is_gone_is_named(tmp_path: Path, workshop: Workshop, classifier: Classifier) -> None:
    checkpoint.save(tmp_path / "model", classifier, Origin("vanished", "own", 1, 0, "", {}))
    with pytest.raises(BadCheckpoint, match="'vanished' comes from a package that is not installed here"):
        checkpoint.load(tmp_path / "model", workshop)
