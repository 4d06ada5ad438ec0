"""The four ways to weigh a row, parts of a set, earlier moments of it, and what the manifest says of them."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import update

from backend.cli import cli
from backend.exports.errors import ExportError
from backend.exports.export import export
from backend.exports.preview import preview
from backend.exports.wish import Format, Weights, Wish
from jobs import estimates
from jobs.settings import Settings
from jobs.workplace import Workplace
from store.database import Store
from store.tables import Project, Round, Subset
from tests.conftest import a_label, add_round, make_project, put_label


def rows(place: Workplace, project: Project, **wish: Any) -> dict[int, dict[str, Any]]:
    return {row["task"]: row for row in preview(place, project.id, Wish(**wish), 1000).rows}


def test_paper_weights_are_those_of_training_and_mean1_scales_them(
    place: Workplace, project: Project, subset: Subset
) -> None:
    paper, mean1 = rows(place, project), rows(place, project, weights=Weights.MEAN1)
    assert paper[5]["weight"] == 1.0
    assert paper[1]["weight"] == 2.0
    mean = sum(row["weight"] for row in paper.values()) / len(paper)
    assert {task: row["weight"] for task, row in mean1.items()} == {
        task: pytest.approx(row["weight"] / mean) for task, row in paper.items()
    }


def test_sum_to_pool_sums_to_the_tasks_of_each_stratum(place: Workplace, project: Project, subset: Subset) -> None:
    found = rows(place, project, weights=Weights.SUM_TO_POOL)
    for stratum, size in (("labelled", 7), ("unlabelled", 5)):
        mass = sum(row["weight"] for row in found.values() if row["stratum"] == stratum)
        assert mass == pytest.approx(size), stratum


def test_unbiased_weights_share_the_pool_among_rounds(store: Store, place: Workplace) -> None:
    """Two rounds of two, π = 1/2, over the whole pool: each stands for it by itself, so each counts half."""
    project = make_project(store, tasks=10)
    add_round(store, project, 0, [1, 2, 3], wanted=2)
    put_label(store, project, 9, a_label(109))
    for n in (1, 2, 3):
        put_label(store, project, n, a_label(100 + n))
    add_round(store, project, 1, [4, 5], wanted=2)
    for n in (4, 5):
        put_label(store, project, n, a_label(100 + n))
    with store.write() as session:
        session.execute(update(Round).values(examined=Round.pool_size))
    found = {task: row["weight"] for task, row in rows(place, project, weights=Weights.UNBIASED).items()}
    assert found[4] == found[5] == pytest.approx(1 / 0.5 / 2)
    assert found[1] == found[2] == pytest.approx(1 / 0.5 / 2 + 1 / 2), "known in the second round"
    assert found[3] == pytest.approx(0.5), "a reserve task stands for itself, where it is known"
    assert found[9] == pytest.approx(1.0), "labelled by hand before all of them (by its time)"


def test_rounds_and_strata_leave_out_the_others(place: Workplace, project: Project, subset: Subset) -> None:
    assert set(rows(place, project, rounds=frozenset({1}))) == {7, 8, 9}
    assert set(rows(place, project, rounds=frozenset({0}))) == {1, 2, 3, 10, 11, 12}
    assert set(rows(place, project, stratum="unlabelled")) == {1, 2, 3, 5}
    assert set(rows(place, project, stratum="labelled", rounds=frozenset({0}))) == {10, 11, 12}


def test_a_set_as_of_an_earlier_moment_says_what_it_cannot_know(store: Store, place: Workplace, tmp_path: Path) -> None:
    project = make_project(store, tasks=6)
    for n in (1, 2, 3):
        put_label(store, project, n, a_label(n, "3", minutes=n))
    put_label(store, project, 2, _changed(2, made=2, changed=9))
    moment = datetime(2026, 1, 1, 0, 2, tzinfo=UTC)
    done = export(place, project.id, Wish(as_of=moment), tmp_path / "set.jsonl")
    assert done.rows == 2
    assert done.manifest["as_of"] == {"moment": moment.isoformat(), "changed_since": 1, "taken_back": 0}
    assert done.manifest["rounds"] == []


def test_a_label_that_is_older_than_the_draw_it_was_joined_to_is_in_the_set_as_of_then(
    store: Store, place: Workplace
) -> None:
    """It arrived late, after the round was drawn."""
    project = make_project(store, tasks=6)
    add_round(store, project, 0, [1, 2], wanted=2)
    put_label(store, project, 1, a_label(1))
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    for weights in Weights:
        assert set(rows(place, project, as_of=moment, weights=weights)) == {1}


def _changed(n: int, *, made: int, changed: int) -> Any:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    times = {"created_at": start + timedelta(minutes=made), "updated_at": start + timedelta(minutes=changed)}
    return a_label(n, "4", **times)


def test_the_manifest_says_how_the_weights_came_about(
    place: Workplace, project: Project, subset: Subset, tmp_path: Path
) -> None:
    done = export(place, project.id, Wish(Format.CSV), tmp_path / "set.csv")
    said = json.loads((tmp_path / "set.csv.manifest.json").read_text())
    assert said == done.manifest
    assert said["rows"] == 10
    assert said["counts"]["provenance"] == {"drawn": 3, "manual": 1, "reserve": 1, "seed": 5}
    assert said["counts"]["stratum"] == {"labelled": 6, "unlabelled": 4}
    assert said["pool"] == {"labelled": 7, "unlabelled": 5}
    assert [(r["of"], r["round"], r["rule"], r["rows"], r["skipped"]) for r in said["rounds"]] == [
        ("annotators", 0, "ent", 3, 1),
        ("dis", 0, "dis", 3, 0),
        ("dis", 1, "dis", 3, 0),
    ]
    assert said["skipped"] == 1
    assert said["model_versions"] == ["iwes-dis-0"]
    assert (said["settings"]["k"], said["settings"]["k0"], said["settings"]["cap"]) == (4, 4, 2.0)
    assert said["settings"]["rule"] == "ent"
    weights = said["weights"]
    assert weights["sum"] == pytest.approx(weights["mean"] * 10)
    assert 0 < weights["effective_sample_size"] <= 10
    with place.store.read() as session:
        assert said["estimates"] == estimates.of_project(session, project).as_dict()
    assert said["estimates"]["tasks"] > 0
    assert said["label_config"]["digest"].startswith("sha256:")
    assert "secret" not in json.dumps(said)
    assert project.token not in json.dumps(said)


def test_the_command_in_the_manifest_makes_the_same_again(
    place: Workplace, settings: Settings, project: Project, subset: Subset, tmp_path: Path
) -> None:
    wish = Wish(Format.CSV, Weights.SUM_TO_POOL, frozenset({0, 1}), "labelled", "dis", datetime(2030, 1, 1, tzinfo=UTC))
    done = export(place, project.id, wish, tmp_path / "set.csv")
    before = {path: path.read_bytes() for path in tmp_path.glob("set*")}
    _, *words = shlex.split(done.manifest["command"])
    words[-1] = str(tmp_path / words[-1])
    answer = CliRunner(env=settings.as_env()).invoke(cli, words)
    assert answer.exit_code == 0, answer.output
    assert "6 rows written to" in answer.output
    assert {path: path.read_bytes() for path in tmp_path.glob("set*")} == before


def test_a_wish_is_read_as_it_is_written() -> None:
    wish = Wish(Format.CSV, Weights.MEAN1, frozenset({0, 1, 2, 5}), "labelled", "dis", datetime(2026, 1, 1, tzinfo=UTC))
    assert wish.words()["rounds"] == "0-2,5"
    assert Wish.said(wish.words()) == wish
    assert Wish.said({"as_of": "2026-01-01"}).as_of == datetime(2026, 1, 1, tzinfo=UTC)
    for words in ({"rounds": "1-"}, {"rounds": "-1"}, {"rounds": "x"}, {"as_of": "13th of May"}, {"odd": "1"}):
        with pytest.raises(ExportError):
            Wish.said(words)
