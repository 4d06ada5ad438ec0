"""A checkpoint comes back as it was, is checked, and survives a kill at any moment of being written."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import torch

from models import card as cards
from models import checkpoint, durable
from models.card import BadCheckpoint, Origin
from models.checkpoint import load, prune, save
from models.classifier import Classifier
from models.network_learner import FullLearner
from models.workshop import Workshop
from tests.models.conftest import examples_of

Labelled = dict[str, Any]  # columns of the same length: images, labels, weights

ORIGIN = Origin(
    network="small-cnn",
    way="full",
    seed=5,
    round=1,
    training_set="sha256:0123",
    metrics={"accuracy": 1.0, "epochs": 12.0},
)


@pytest.fixture(scope="module")
def successor(classifier: Classifier, learner: FullLearner, training_set: Labelled) -> Classifier:
    """Another classifier for the same folder."""
    fitted = learner.fit(examples_of(training_set), seed=6)
    return Classifier(learner, fitted, classes=classifier.classes, version="project-1-round-2", temperature=1.5)


@pytest.fixture
def saved(tmp_path: Path, classifier: Classifier) -> Path:
    return save(tmp_path / "models" / "round-1", classifier, ORIGIN)


def weights_file(folder: Path) -> Path:
    (file,) = folder.glob("*.safetensors")
    return file


def test_a_classifier_comes_back_as_it_was(
    saved: Path, classifier: Classifier, unseen: Labelled, workshop: Workshop
) -> None:
    back = load(saved, workshop)
    assert back.classes == classifier.classes
    assert back.version == classifier.version
    assert back.temperature == classifier.temperature
    np.testing.assert_array_equal(back.probabilities(unseen["images"]), classifier.probabilities(unseen["images"]))


def test_the_card_says_how_the_classifier_came_about(saved: Path) -> None:
    card = cards.read(saved)
    assert card.classes == ["left", "middle", "right: größer"]
    assert (card.network, card.input_size, card.version) == ("small-cnn", 28, "project-1-round-1")
    assert (card.way, card.frozen, card.temperature) == ("full", None, 1.0)
    assert "28 × 28" in card.transform
    assert Origin(card.network, card.way, card.seed, card.round, card.training_set, card.metrics) == ORIGIN
    assert card.libraries["torch"].split("+")[0] == torch.__version__.split("+")[0]


def test_loading_draws_no_random_numbers(saved: Path, workshop: Workshop) -> None:
    before = torch.get_rng_state()
    load(saved, workshop)
    assert torch.equal(torch.get_rng_state(), before)


def test_saving_again_replaces_the_checkpoint_and_leaves_nothing_behind(
    saved: Path, successor: Classifier, workshop: Workshop
) -> None:
    old_weights = weights_file(saved)
    (saved / "weights-0000.safetensors.partial").write_bytes(b"left by a kill")
    save(saved, successor, dataclasses.replace(ORIGIN, round=2))
    assert load(saved, workshop).version == "project-1-round-2"
    assert not old_weights.exists()
    assert {path.name for path in saved.iterdir()} == {"card.json", weights_file(saved).name}


def test_a_save_that_fails_leaves_the_last_checkpoint(saved: Path, successor: Classifier, workshop: Workshop) -> None:
    with pytest.raises(ValueError, match="JSON"):
        save(saved, successor, dataclasses.replace(ORIGIN, metrics={"accuracy": float("nan")}))
    assert load(saved, workshop).version == "project-1-round-1"


def killed_at_line(number: int, folder: Path, classifier: Classifier) -> bool:
    """Save in a child process killed at the given line of checkpoint.py or durable.py; False if it ended before."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return os.WIFSIGNALED(status)
    lines = 0

    def count(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal lines
        if frame.f_code.co_filename not in (checkpoint.__file__, durable.__file__) or frame.f_code.co_name.startswith(
            "<"
        ):
            return None
        if event == "line":
            lines += 1
            if lines == number:
                os.kill(os.getpid(), signal.SIGKILL)
        return count

    try:
        sys.settrace(count)
        save(folder, classifier, dataclasses.replace(ORIGIN, round=2))
        os._exit(0)
    finally:
        os._exit(1)


@pytest.mark.slow
def test_a_kill_at_any_line_of_a_save_leaves_a_whole_checkpoint(
    saved: Path, tmp_path: Path, successor: Classifier, workshop: Workshop
) -> None:
    versions = []
    number = 1
    while True:
        folder = tmp_path / f"killed-at-{number}"
        shutil.copytree(saved, folder)
        killed = killed_at_line(number, folder, successor)
        versions.append(load(folder, workshop).version)
        if not killed:
            break
        number += 1

    assert versions[0] == "project-1-round-1"
    assert versions[-1] == "project-1-round-2"
    assert versions == sorted(versions), "once the new checkpoint is there, it stays"
    assert number > 25


@pytest.mark.slow
def test_a_kill_in_the_first_save_leaves_no_half_checkpoint(
    tmp_path: Path, classifier: Classifier, workshop: Workshop
) -> None:
    folder = tmp_path / "new"
    number = 1
    while killed_at_line(number, folder, classifier) and not (folder / "card.json").exists():
        with pytest.raises(BadCheckpoint, match=r"card\.json: No such file"):
            load(folder, workshop)
        number += 1
    assert number > 20
    assert load(folder, workshop).version == "project-1-round-1"


def test_changed_weights_are_refused(saved: Path, workshop: Workshop) -> None:
    content = bytearray(weights_file(saved).read_bytes())
    content[-5] ^= 1
    weights_file(saved).write_bytes(content)
    with pytest.raises(BadCheckpoint, match="do not match the digest"):
        load(saved, workshop)


def test_missing_weights_are_refused(saved: Path, workshop: Workshop) -> None:
    weights_file(saved).unlink()
    with pytest.raises(BadCheckpoint, match=r"\.safetensors: No such file"):
        load(saved, workshop)


def test_a_folder_without_a_card_is_refused(tmp_path: Path, workshop: Workshop) -> None:
    with pytest.raises(BadCheckpoint, match=r"card\.json: No such file"):
        load(tmp_path, workshop)


def test_a_card_that_is_not_json_is_refused(saved: Path, workshop: Workshop) -> None:
    (saved / "card.json").write_text("{half a card")
    with pytest.raises(BadCheckpoint, match="not a card"):
        load(saved, workshop)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("weights_sha256", "../../../etc/passwd", "weights_sha256 is"),
        ("classes", ["one", "one"], "classes is"),
        ("classes", "abc", "classes is"),
        ("classes", ["one", "two"], "do not fit the network"),
        ("network", "unheard-of", "unknown network 'unheard-of'"),
        ("version", None, "version is None"),
        ("temperature", 0, "temperature is 0"),
        ("way", "sideways", "way is 'sideways'"),
        ("frozen", "../../secret", "frozen is"),
    ],
)
def test_a_card_that_does_not_fit_is_refused(
    saved: Path, field: str, value: object, message: str, workshop: Workshop
) -> None:
    path = saved / "card.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    with pytest.raises(BadCheckpoint, match=message):
        load(saved, workshop)


@pytest.mark.parametrize("content", ["[]", "{}", '{"version": "1"}', "3"])
def test_json_that_is_no_card_is_refused(saved: Path, content: str, workshop: Workshop) -> None:
    (saved / "card.json").write_text(content)
    with pytest.raises(BadCheckpoint, match="not a card"):
        load(saved, workshop)


def test_pruning_lets_the_oldest_weights_go_and_keeps_cards_and_those_named(
    tmp_path: Path, classifier: Classifier, workshop: Workshop
) -> None:
    folders = [save(tmp_path / f"model-{number}", classifier, ORIGIN) for number in range(5)]
    for age, folder in enumerate(reversed(folders)):
        os.utime(weights_file(folder), (1e9 - age, 1e9 - age))
    one = weights_file(folders[0]).stat().st_size

    assert prune(tmp_path, most_bytes=6 * one, keep=()) == []
    assert prune(tmp_path, most_bytes=int(2.5 * one), keep=("model-0",)) == ["model-1", "model-2", "model-3"]

    assert [bool(list(folder.glob("*.safetensors"))) for folder in folders] == [True, False, False, False, True]
    assert all(cards.read(folder).version == classifier.version for folder in folders)
    load(folders[0], workshop)
    with pytest.raises(BadCheckpoint, match="No such file"):
        load(folders[1], workshop)
