"""A round's training: every label with its weight, images described once, and no bad model in place of a good one."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jobs import versions
from jobs.change import change
from jobs.draw import draw_round
from jobs.train import train_round
from jobs.workplace import Workplace
from models import card as cards
from models import checkpoint, pretrained
from store import pool, projects, rounds
from store.database import Store
from store.tables import Model, Project, Round, RoundState, Rule
from tests.conftest import a_label, add_round, make_project, put_label
from tests.files import Files, picture

pytestmark = pytest.mark.slow

NAMES = ["dark", "light"]
COUNT = 24
ASTRAY = """
    import numpy as np
    from models.learner import Diverged

    mode = "sound"

    class Astray:
        input_size = 28
        frozen = "pixel-1"
        starts = []

        def describe(self, images):
            return images[:, 0, :1, 0].astype(np.float32)

        def fit(self, examples, *, seed, start=None, on_progress=print):
            Astray.starts.append(start)
            if mode == "diverges":
                raise Diverged("the loss became nan")
            return Fitted(np.float32(-1 if mode == "collapses" else 1))

        def restore(self, tensors, *, classes):
            return Fitted(tensors["sign"])

    class Fitted:
        metrics = {"loss": 0.5}

        def __init__(self, sign):
            self.sign = np.asarray(sign).reshape(1)

        def logits(self, rows):
            return np.hstack([-(rows[:] - 127), rows[:] - 127]) * self.sign / 40

        def tensors(self):
            return {"sign": self.sign}

    def make(*, weights_folder, device):
        return Astray()
"""


@pytest.fixture
def files() -> Iterator[Files]:
    with Files() as files:
        files.held = {f"/data/{n}.png": picture(28, shade=40 if n % 2 else 220, noise=n) for n in range(1, COUNT + 1)}
        yield files


@pytest.fixture
def astray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of another package that is sound until its `mode` says otherwise."""
    (tmp_path / "astray_model.py").write_text(textwrap.dedent(ASTRAY))
    info = tmp_path / "astray_model-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: astray-model\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[iwes.models]\nastray = astray_model:make\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "astray_model", raising=False)


def a_project(store: Store, files: Files, **changes: object) -> Project:
    return make_project(store, tasks=COUNT, studio_url=files.url, classes=NAMES, **changes)


def labelled_round(store: Store, project: Project, number: int, ids: list[int]) -> None:
    """A round drawn, published and labelled with the truth to its last task."""
    add_round(store, project, number, ids, wanted=len(ids))
    for n in ids:
        put_label(store, project, n, a_label(n, NAMES[0] if n % 2 else NAMES[1]))


def after(place: Workplace, project: Project, number: int) -> tuple[Round, list[Model]]:
    train_round(place, project.id, number)
    with place.store.read() as session:
        return rounds.by_number(session, project, number), list(rounds.models(session, project))


def test_a_training_leaves_a_model_its_card_and_its_metrics(place: Workplace, store: Store, files: Files) -> None:
    project = a_project(store, files)
    labelled_round(store, project, 0, list(range(1, 13)))
    round_, (model,) = after(place, project, 0)
    assert (round_.state, round_.problem) == (RoundState.TRAINED, None)
    assert (model.version, model.examples) == (versions.version(0), 12)
    assert 8 <= model.metrics["seed_correct"] <= model.metrics["seed_count"] == 12
    card = cards.read(versions.folder(place.settings, project, model.version))
    assert (card.network, card.way, card.classes) == ("small-cnn", "full", NAMES)
    assert card.metrics["epochs"] == model.metrics["epochs"] > 1


def test_an_image_that_cannot_be_read_is_set_aside_and_the_others_train(
    place: Workplace, store: Store, files: Files
) -> None:
    files.held["/data/3.png"] = b"<html>log in</html>"
    project = a_project(store, files)
    labelled_round(store, project, 0, list(range(1, 9)))
    _, (model,) = after(place, project, 0)
    assert model.examples == 7
    with store.read() as session:
        assert list(pool.problems(session, project).values()) == [1]


def test_a_head_describes_each_image_once_for_all_rounds(place: Workplace, store: Store, files: Files) -> None:
    project = a_project(store, files, training={"way": "head"})
    labelled_round(store, project, 0, list(range(1, 9)))
    after(place, project, 0)
    asked = len(files.asked)
    labelled_round(store, project, 1, [9, 10, 11, 12])
    _, models = after(place, project, 1)
    assert len(files.asked) - asked == 4, "only the new images crossed the network"
    assert [model.examples for model in models] == [8, 12]
    assert len(list((place.settings.models_folder / "frozen").glob("*.safetensors"))) == 1
    files.held.clear()  # whatever is asked for now is not there
    labelled_round(store, project, 2, [])
    with store.write() as session:
        rounds.by_number(session, project, 2).state = RoundState.CLOSED
    _, models = after(place, project, 2)
    assert models[-1].examples == 12


def drawn_by_a_head(place: Workplace, store: Store, files: Files, **changes: object) -> Project:
    """Round 1 is drawn by a head that eight labels have trained."""
    project = a_project(store, files, training={"way": "head"}, **changes)
    labelled_round(store, project, 0, list(range(1, 9)))
    after(place, project, 0)
    draw_round(place, project.id, 1)
    return project


def test_a_draw_scores_by_descriptions_too(place: Workplace, store: Store, files: Files) -> None:
    project = drawn_by_a_head(place, store, files)
    with store.read() as session:
        round_ = rounds.by_number(session, project, 1)
        assert round_.rule == "ent"
        assert all(draw.predicted in NAMES for draw in round_.draws)
        beliefs = np.array([np.frombuffer(draw.beliefs or b"", "<f4") for draw in round_.draws])
        assert [NAMES[place] for place in beliefs.argmax(axis=1)] == [draw.predicted for draw in round_.draws]
        assert beliefs.sum(axis=1) == pytest.approx(1)
        assert round_.expected is not None
        assert round_.expected["classes"] == NAMES
        assert sum(round_.expected["shares"]) == pytest.approx(1)
        assert round_.examined <= round_.expected["tasks"] <= round_.pool_size


def test_a_project_may_be_drawn_from_by_margin(place: Workplace, store: Store, files: Files) -> None:
    project = drawn_by_a_head(place, store, files, rule=Rule.MARGIN)
    with store.read() as session:
        round_ = rounds.by_number(session, project, 1)
        assert round_.rule == "margin"
        beliefs = np.array([np.frombuffer(draw.beliefs or b"", "<f4") for draw in round_.draws])
        scores = np.array([draw.score for draw in round_.draws])
    assert scores == pytest.approx(1 - np.ptp(beliefs, axis=1), abs=1e-6)
    assert 0 < scores.min() < scores.max() < 1


def test_a_draw_is_recorded_as_it_was_made_though_the_settings_change_meanwhile(
    place: Workplace, store: Store, files: Files
) -> None:
    project = a_project(store, files, training={"way": "head"})
    labelled_round(store, project, 0, list(range(1, 9)))
    after(place, project, 0)

    class Changing(dict[str, bytes]):
        def get(self, path: str, default: bytes | None = None) -> bytes | None:  # type: ignore[override]
            change(place, project.id, {"rule": "margin", "floor": 0.4, "reserve": 0.25})
            return super().get(path, default)

    files.held = Changing(files.held)
    draw_round(place, project.id, 1)
    with store.read() as session:
        assert session.get_one(Project, project.id).floor == 0.4
        round_ = rounds.by_number(session, project, 1)
        assert (round_.rule, round_.floor, round_.reserve) == ("ent", 0.05, 0.5)
        assert min(draw.probability for draw in round_.draws) < 0.4


def test_with_very_many_classes_a_draw_keeps_the_likeliest_alone(
    place: Workplace, store: Store, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.scoring.MOST_CLASSES", len(NAMES) - 1)
    project = drawn_by_a_head(place, store, files)
    with store.read() as session:
        round_ = rounds.by_number(session, project, 1)
        assert round_.expected is None
        assert all(draw.predicted in NAMES and draw.beliefs is None for draw in round_.draws)


def test_a_calibrated_model_keeps_its_temperature(place: Workplace, store: Store, files: Files) -> None:
    project = a_project(store, files, training={"way": "head", "calibrate": True})
    labelled_round(store, project, 0, list(range(1, 13)))
    _, (model,) = after(place, project, 0)
    back = checkpoint.load(versions.folder(place.settings, project, model.version), place.workshop)
    assert back.temperature == model.metrics["temperature"] != 1.0


def test_a_rate_chosen_on_the_seed_set_is_used_ever_after(place: Workplace, store: Store, files: Files) -> None:
    project = a_project(store, files, training={"way": "head", "learning_rate": "choose"})
    labelled_round(store, project, 0, list(range(1, 9)))
    _, (first,) = after(place, project, 0)
    with store.write() as session:  # one that is not among those to choose from, to tell it from a new choice
        stored = rounds.models(session, project)[0]
        stored.metrics = {**stored.metrics, "learning_rate": 0.0123}
    labelled_round(store, project, 1, [9, 10, 11, 12])
    _, (_, second) = after(place, project, 1)
    assert first.metrics["learning_rate"] in (0.001, 0.002, 0.005, 0.01, 0.1)
    assert second.metrics["learning_rate"] == 0.0123


@pytest.mark.parametrize(
    ("mode", "reason"),
    [("diverges", "the loss became nan"), ("collapses", "on the seed set 0 of 8 are right")],
)
@pytest.mark.usefixtures("astray")
def test_a_model_that_went_astray_never_replaces_the_good_one(
    place: Workplace, store: Store, files: Files, mode: str, reason: str
) -> None:
    project = a_project(store, files, network="astray")
    labelled_round(store, project, 0, list(range(1, 9)))
    after(place, project, 0)
    sys.modules["astray_model"].mode = mode  # type: ignore[attr-defined]
    labelled_round(store, project, 1, [9, 10, 11, 12])
    round_, models = after(place, project, 1)
    assert round_.state == RoundState.TRAINED
    assert reason in str(round_.problem)
    assert "run 3 of 3" in str(round_.problem)
    assert [model.version for model in models] == [versions.version(0)]
    with store.read() as session:
        current = rounds.current_model(session, projects.by_id(session, project.id))
    assert current is not None
    assert current.version == versions.version(0)


@pytest.mark.usefixtures("astray")
@pytest.mark.parametrize("warm", [True, False])
def test_a_warm_start_hands_the_last_model_over(place: Workplace, store: Store, files: Files, warm: bool) -> None:
    project = a_project(store, files, network="astray", training={"warm_start": warm})
    labelled_round(store, project, 0, list(range(1, 9)))
    after(place, project, 0)
    labelled_round(store, project, 1, [9, 10, 11, 12])
    after(place, project, 1)
    *before, last = sys.modules["astray_model"].Astray.starts
    assert not any(before), "the first model and those that check it begin anew"
    assert (last is not None) == warm
    if warm:
        np.testing.assert_array_equal(last.tensors()["sign"], [1])


def test_old_weights_make_room_but_the_first_and_the_last_stay(place: Workplace, store: Store, files: Files) -> None:
    tight = Workplace(replace(place.settings, models_gigabytes=1e-9), place.store)
    project = a_project(store, files)
    for number, ids in enumerate([[1, 2, 3, 4], [5, 6], [7, 8], [9, 10]]):
        labelled_round(store, project, number, ids)
        after(tight, project, number)
    folder = versions.folder(place.settings, project, versions.version(0)).parent
    kept = {path.parent.name for path in folder.glob("*/weights-*.safetensors")}
    assert kept == {versions.version(0), versions.version(2), versions.version(3)}


@pytest.mark.usefixtures("astray")
def test_labels_that_cannot_all_be_learnt_are_no_collapse(place: Workplace, store: Store, files: Files) -> None:
    """Half of the seed's labels are wrong. A later model that sees through them answers half of the seed right, and so
    did the first on what it had not seen."""
    project = a_project(store, files, network="astray")
    add_round(store, project, 0, list(range(1, 9)), wanted=8)
    for n in range(1, 9):
        put_label(store, project, n, a_label(n, NAMES[0] if (n % 2) == (n <= 4) else NAMES[1]))
    after(place, project, 0)
    labelled_round(store, project, 1, [9, 10, 11, 12])
    round_, models = after(place, project, 1)
    assert round_.problem is None
    assert len(models) == 2


def test_an_image_that_is_away_is_left_out_this_time_and_not_for_good(
    place: Workplace, store: Store, files: Files
) -> None:
    project = a_project(store, files)
    labelled_round(store, project, 0, list(range(1, 9)))
    files.broken.add("/data/3.png")
    _, (model,) = after(place, project, 0)
    assert model.examples == 7
    with store.read() as session:
        assert pool.problems(session, project) == {}
    files.broken.clear()
    labelled_round(store, project, 1, [9, 10])
    _, models = after(place, project, 1)
    assert models[-1].examples == 10


def test_the_way_decided_first_stays_decided(
    place: Workplace, store: Store, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = a_project(store, files, network="efficientnet-lite0")
    labelled_round(store, project, 0, list(range(1, 7)))
    after(place, project, 0)
    with store.read() as session:
        training = projects.by_id(session, project.id).training
    assert (training["way"], training["pretrained"]) == ("head", True)
    monkeypatch.setattr(pretrained, "find", lambda *_: None)  # from now on they cannot be had
    labelled_round(store, project, 1, [7, 8])
    _, models = after(place, project, 1)
    assert models[0].metrics["backbone"] == models[1].metrics["backbone"] is not None
