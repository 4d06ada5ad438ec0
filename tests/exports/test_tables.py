"""The weighted training set as a file: what every row says, in three formats that agree."""

from __future__ import annotations

import csv
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest

from backend.exports import export as exporting
from backend.exports.errors import ExportError
from backend.exports.export import check
from backend.exports.wish import Format, Wish, format_of
from iwes.training_set.columns import COLUMNS
from jobs.workplace import Workplace
from store import examples, labels, pool, projects, weighted_set
from store.database import Store
from store.tables import Mode, Project, Subset
from store.weighted_set import Part
from tests.conftest import make_project
from tests.exports.conftest import FORMULAS


def export(place: Workplace, project: Project, subset: Subset | None, out: Path) -> int:
    wish = Wish(format_of(out, None), subset=subset.name if subset else None)
    return exporting.export(place, project.id, wish, out).rows


def as_jsonl(path: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [row | {name: datetime.fromisoformat(row[name]) for name in ("created", "updated")} for row in rows]


def as_parquet(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    return [row | {"data": json.loads(row["data"])} for row in rows]


def as_csv(path: Path) -> list[dict[str, Any]]:
    """Back to what the cells stood for."""
    parsed: dict[str, Any] = {"whole": int, "number": float, "wholes": json.loads, "json": json.loads}
    parsed |= {"text": lambda text: text.removeprefix("'"), "time": datetime.fromisoformat}
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [{name: parsed[COLUMNS[name]](cell) if cell else None for name, cell in row.items()} for row in rows]


def test_all_formats_say_the_same(place: Workplace, project: Project, subset: Subset, tmp_path: Path) -> None:
    assert [export(place, project, None, tmp_path / f"set.{kind}") for kind in ("jsonl", "csv", "parquet")] == [10] * 3
    rows = as_jsonl(tmp_path / "set.jsonl")
    assert rows == as_parquet(tmp_path / "set.parquet") == as_csv(tmp_path / "set.csv")
    assert all(list(row) == list(COLUMNS) for row in rows)
    manifests = {(tmp_path / f"set.{kind}.manifest.json").read_text() for kind in ("jsonl", "csv", "parquet")}
    assert len({json.loads(text)["row_digest"] for text in manifests}) == 1, "whatever the format"
    assert len(list(tmp_path.glob("*set*"))) == 6


def test_a_row_says_where_its_weight_comes_from(
    place: Workplace, project: Project, subset: Subset, tmp_path: Path
) -> None:
    export(place, project, None, tmp_path / "set.jsonl")
    rows = {row["task"]: row for row in as_jsonl(tmp_path / "set.jsonl")}
    assert list(rows) == [1, 2, 3, 5, 7, 8, 9, 10, 11, 12], (
        "a skipped task and one that was not selected are no examples"
    )
    assert {task: row["provenance"] for task, row in rows.items()} == {
        **{1: "seed", 2: "seed", 3: "reserve", 5: "manual"},
        **{7: "drawn", 8: "drawn", 9: "drawn", 10: "seed", 11: "seed", 12: "seed"},
    }
    assert {row["stratum"] for task, row in rows.items() if task < 6} == {"unlabelled"}
    assert {row["stratum"] for task, row in rows.items() if task > 6} == {"labelled"}
    assert rows[1] == {
        **{"task": 1, "image": "/data/1.png", "class": "cat", "weight": 2.0, "probability": 0.5, "inclusion": 0.5},
        **{"score": 0.5, "passes": 0, "round": 0, "stratum": "unlabelled", "provenance": "seed"},
        **{"model_version": None, "annotations": [101, 201], "annotators": [1], "data": {"text": "t1"}},
        **{"created": datetime(2026, 1, 1, tzinfo=UTC), "updated": datetime(2026, 1, 1, 0, 1, tzinfo=UTC)},
    }
    assert (rows[5]["weight"], rows[5]["probability"], rows[5]["round"]) == (1.0, None, None)
    assert (rows[9]["model_version"], rows[9]["round"], rows[9]["passes"]) == ("iwes-dis-0", 1, 2)


def test_the_rows_of_a_project_are_what_its_models_train_on(
    store: Store, project: Project, subset: Subset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weighted_set, "CHUNK", 3)
    with store.read() as session:
        trained = examples.of_project(session, project, subset=subset)
        rows = list(weighted_set.rows(session, project, Part()))
        assert [(row.task, row.class_name, row.weight) for row in rows] == [
            (example.studio_id, example.class_name, example.weight) for example in trained
        ]


def test_a_subset_has_its_own_tasks_alone(place: Workplace, project: Project, subset: Subset, tmp_path: Path) -> None:
    assert export(place, project, subset, tmp_path / "set.csv") == 6
    assert [row["task"] for row in as_csv(tmp_path / "set.csv")] == [7, 8, 9, 10, 11, 12]


def test_labels_that_came_all_train_in_mode_ent(place: Workplace, store: Store, project: Project) -> None:
    with store.write() as session:
        projects.change_mode(session, project.id, Mode.ENT)
    with store.read() as session:
        rows = list(weighted_set.rows(session, projects.by_id(session, project.id), Part()))
    assert [row.provenance for row in rows if row.task > 5] == ["imported"] * 7
    assert [row.stratum for row in rows if row.task > 5] == ["labelled"] * 7


def test_no_cell_of_a_csv_is_a_formula(place: Workplace, project: Project, subset: Subset, tmp_path: Path) -> None:
    export(place, project, subset, tmp_path / "set.csv")
    with (tmp_path / "set.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["class"] for row in rows] == [f"'{name}" for name in FORMULAS.values()]
    export(place, project, subset, tmp_path / "set.jsonl")
    assert [row["class"] for row in as_jsonl(tmp_path / "set.jsonl")] == list(FORMULAS.values())


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_one_state_gives_the_same_bytes(
    place: Workplace, project: Project, subset: Subset, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(place, project, None, tmp_path / f"one.{kind}")
    export(place, project, None, tmp_path / f"two.{kind}")
    assert (tmp_path / f"one.{kind}").read_bytes() == (tmp_path / f"two.{kind}").read_bytes()


def test_a_failing_export_leaves_the_last_file_as_it_was(
    place: Workplace, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "set.csv"
    out.write_text("the last one")

    def full(path: Path, records: object) -> None:
        path.write_text("half of")
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(exporting._TABLES, Format.CSV, full)
    with pytest.raises(OSError, match="No space left"):
        export(place, project, None, out)
    assert out.read_text() == "the last one"
    assert list(tmp_path.glob(".set*")) == []


def test_half_a_pair_of_surrogates_is_written_out(place: Workplace, store: Store, tmp_path: Path) -> None:
    project = make_project(store, classes=["cat"])
    with store.write() as session:
        pool.mirror(session, project, {1: {"image": "a\udc80.png", "note": "\ud800"}})
        labels.record_given(session, project, {1: "cat"})
        projects.change_mode(session, project.id, Mode.ENT)
    for kind, read in (("jsonl", as_jsonl), ("csv", as_csv), ("parquet", as_parquet)):
        export(place, project, None, tmp_path / f"set.{kind}")
        (row,) = read(tmp_path / f"set.{kind}")
        assert (row["image"], row["data"]) == ("a\\udc80.png", {"note": "\ud800"})


def test_a_file_that_cannot_be_written_is_told_before_anything_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder.csv").mkdir()
    for name, said in (
        ("set.xlsx", r"ends in \.jsonl, \.csv, \.parquet"),
        ("no/where.csv", "there is no such folder"),
        ("folder.csv", "that is a folder"),
    ):
        with pytest.raises(ExportError, match=said):
            check(format_of(tmp_path / name, None), tmp_path / name)
    monkeypatch.setattr(exporting, "find_spec", lambda name: None)
    with pytest.raises(ExportError, match=r"pip install 'iwes-label-studio\[parquet\]'"):
        check(Format.PARQUET, tmp_path / "set.parquet")
    check(Format.CSV, tmp_path / "set.csv")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(ExportError, match="nothing may be written"):
        check(Format.CSV, tmp_path / "set.csv")
