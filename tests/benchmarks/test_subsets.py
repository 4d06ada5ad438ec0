"""The benchmark of subsets on small real images: what makes its comparison fair, and that it goes on where it was."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from benchmarks.page import END
from benchmarks.subsets import __main__ as program
from benchmarks.subsets import fashion, workers
from benchmarks.subsets.curve import Point
from benchmarks.subsets.rules import FULL, RULES
from benchmarks.subsets.run import Job, Run, measure, select
from benchmarks.subsets.selection import Selection
from benchmarks.subsets.settings import Settings
from benchmarks.subsets.summary import Mean, Summary

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

TINY = Settings(k0=30, k=10, rounds=2, epochs=2, full_epochs=1)
SUBSETS = [name for name in RULES if name != FULL]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Digits in the four files that Fashion-MNIST comes in, 200 to select from and 50 to be tested on."""
    made = tmp_path_factory.mktemp("fashion")
    pixels, labels = load_digits(return_X_y=True)
    images = np.zeros((250, 28, 28), np.uint8)
    images[:, 2:26, 2:26] = np.kron(pixels[:250].reshape(-1, 8, 8) * 15, np.ones((3, 3)))
    for name, part in zip(fashion.FILES, (images[:200], labels[:200], images[200:], labels[200:250]), strict=True):
        sizes = b"".join(size.to_bytes(4, "big") for size in part.shape)
        head = b"\0\0\x08" + bytes([part.ndim]) + sizes
        (made / name).write_bytes(gzip.compress(head + part.astype(np.uint8).tobytes()))
    return made


@pytest.fixture(scope="module")
def selected(folder: Path) -> dict[str, tuple[Selection, list[Point]]]:
    """What each rule makes of seed 7."""
    return {rule: select(Job(rule, 7), fashion.read(folder), TINY) for rule in SUBSETS}


def test_all_rules_start_from_the_same_seed_set_and_the_same_first_model(selected) -> None:
    first, points = selected["random"]
    for selection, others in selected.values():
        assert selection.index[: TINY.k0].tolist() == first.index[: TINY.k0].tolist()
        assert (selection.weight[: TINY.k0] == 1).all()
        assert others[0] == points[0]


def test_another_seed_gives_another_seed_set(selected, folder: Path) -> None:
    other, _ = select(Job("random", 8), fashion.read(folder), TINY)
    assert set(other.index[: TINY.k0]) != set(selected["random"][0].index[: TINY.k0])


@pytest.mark.parametrize("rule", SUBSETS)
def test_no_task_is_selected_twice_and_every_round_has_its_model(rule: str, selected) -> None:
    selection, points = selected[rule]
    assert len(set(selection.index.tolist())) == len(selection.index) == 50
    assert np.bincount(selection.round).tolist() == [30, 10, 10]
    assert [point.labels for point in points] == TINY.labels() == [30, 40, 50]
    assert all(0 <= point.accuracy <= 1 for point in points)


@pytest.mark.parametrize("rule", ["dis", "loss"])
def test_the_papers_cap_makes_every_weight_of_a_label_rule_the_cap(rule: str, selected) -> None:
    selection, _ = selected[rule]
    assert (selection.weight[TINY.k0 :] == 2).all()
    assert selection.share_capped() == 1
    assert selection.effective_size() == pytest.approx((30 + 2 * 20) ** 2 / (30 + 4 * 20))


def test_the_floor_in_place_of_the_cap_lets_weights_differ_up_to_20(selected) -> None:
    selection, _ = selected["dis-floor"]
    drawn = selection.weight[TINY.k0 :]
    assert drawn == pytest.approx(1 / selection.probability[TINY.k0 :])
    assert drawn.min() >= np.e - 1e-9
    assert drawn.max() <= 20 + 1e-9
    assert selection.share_capped() == 0


@pytest.mark.parametrize("rule", ["random", "margin"])
def test_baselines_weigh_every_label_1(rule: str, selected) -> None:
    selection, _ = selected[rule]
    assert (selection.weight == 1).all()
    assert selection.share_capped() == 0


def test_margin_takes_the_smallest_margins_of_the_whole_pool(selected, folder: Path) -> None:
    assert selected["margin"][0].examined == (200 - 30) + (200 - 40)


def test_the_full_set_is_one_model_trained_on_everything(folder: Path) -> None:
    run = measure(Job(FULL, 7), fashion.read(folder), TINY)
    assert [point.labels for point in run.points] == [200]
    assert run.points[0].epochs == 2  # one, and one more with the labels that were held out


def words(folder: Path, tmp_path: Path) -> list[str]:
    sizes = {"seeds": 1, "workers": 1, "k0": 20, "k": 10, "rounds": 1, "epochs": 1, "full-epochs": 1}
    places = {"fashion": folder, "docs": tmp_path, "journal": tmp_path / "runs.jsonl"}
    return [f"--{name}={value}" for name, value in {**sizes, **places}.items()]


def test_what_was_run_is_not_run_again(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    pytest.importorskip("matplotlib")
    made: list[Job] = []

    def counted(job: Job, *rest: object) -> Run:
        made.append(job)
        if len(made) == 3:
            raise KeyboardInterrupt
        return measure(job, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(workers, "measure", counted)
    with pytest.raises(KeyboardInterrupt):
        program.main(words(folder, tmp_path))
    journal = tmp_path / "runs.jsonl"
    journal.write_text(journal.read_text() + '{"rule": "cut off in the mid')
    stopped_at = made[2]
    assert program.main(words(folder, tmp_path)) == 0
    assert len(made) == 1 + len(RULES)
    assert [job for job in set(made) if made.count(job) > 1] == [stopped_at]
    tables = capsys.readouterr().out
    written = (tmp_path / "benchmark-subsets.md").read_text()
    assert tables.strip() in written
    picture = (tmp_path / "figures" / "subsets.svg").read_bytes()

    assert program.main(words(folder, tmp_path)) == 0
    assert program.main(["--page-only", "--docs", str(tmp_path)]) == 0
    assert len(made) == 1 + len(RULES)
    assert (tmp_path / "benchmark-subsets.md").read_text() == written
    assert (tmp_path / "figures" / "subsets.svg").read_bytes() == picture


def test_runs_of_other_sizes_or_other_images_do_not_count_as_done(folder: Path, tmp_path: Path) -> None:
    run = measure(Job("random", 0), fashion.read(folder), Settings(k0=20, k=10, rounds=0, epochs=1))
    workers.journal(tmp_path / "runs", run.data, run.settings).add(run)
    assert workers.journal(tmp_path / "runs", run.data, run.settings).runs() == [run]
    assert workers.journal(tmp_path / "runs", run.data, TINY).runs() == []
    assert workers.journal(tmp_path / "runs", "other", run.settings).runs() == []


def test_missing_files_are_named_with_where_to_get_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["--fashion", str(tmp_path / "nowhere"), "--docs", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "train-images-idx3-ubyte.gz" in said
    assert "dataset-fashion-mnist" in said
    assert "--fashion" in said


def test_differences_to_random_are_taken_seed_by_seed() -> None:
    def run(rule: str, seed: int, last: float) -> Run:
        points = (Point(30, 1, 0.5), Point(40, 1, last))
        return Run(rule, seed, "", Settings(30, 10, 1), points, 0.0, 40.0, 1.0, 1.0, 0, 0.0, 0.0)

    runs = [run("random", 0, 0.60), run("random", 1, 0.70), run("dis", 1, 0.72), run("dis", 0, 0.61)]
    summary = Summary(runs)
    assert summary.over_random("dis")[0] == Mean(0.0, 0.0)
    gain = summary.over_random("dis")[1]
    assert (gain.value, gain.error) == (pytest.approx(1.5), pytest.approx(0.5))
    assert summary.seeds_better("dis") == 2


def test_the_page_keeps_what_people_wrote_around_the_results(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(f"# Ours\n\nbefore\n\n{program.PAGE.begin}\nold\n{END}\n\nafter\n")
    program.PAGE.write(path, "new")
    assert path.read_text() == f"# Ours\n\nbefore\n\n{program.PAGE.begin}\nnew\n{END}\n\nafter\n"
