"""Selecting from a folder of images in one process: to the size asked for, whatever is killed or damaged on the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backend.exports.export import export
from backend.exports.wish import Wish as ExportWish
from jobs import dataset, select_here
from jobs.connect import ConnectError, Options
from jobs.dataset import DatasetError
from jobs.loop import selecting
from jobs.select import select_round
from jobs.select_here import Wish
from jobs.settings import Settings
from jobs.status import SubsetStatus
from jobs.workplace import Workplace
from store import pool, projects, rounds, subsets, weighted_set
from store.database import Store, open_store
from store.subsets import BadSubset
from store.tables import Project, Subset
from store.weighted_set import Part, WeightedRow
from tests.files import class_folders, picture

SMALL = Wish(size=16, rule="loss", seed_size=8, k=8, rng_seed=3)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    class_folders(tmp_path / "photos", 45)
    return tmp_path / "photos"


def unheard(status: SubsetStatus, progress: Mapping[str, Any]) -> None: ...


def remembered(place: Workplace, root: Path, wish: Wish = SMALL) -> tuple[Project, Subset]:
    """As `select_here` begins, without the hours that follow."""
    options = Options(network=wish.network, rng_seed=wish.rng_seed)
    return select_here._remember(place, dataset.read(root), wish, options)


def selected(place: Workplace, project: Project, subset: Subset) -> list[WeightedRow]:
    with place.store.read() as session:
        return list(weighted_set.rows(session, projects.by_id(session, project.id), Part(subset=subset.id)))


@pytest.mark.slow
def test_a_subset_is_selected_without_redis_and_label_studio_and_tells_how_far_it_is(
    place: Workplace, photos: Path
) -> None:
    heard: list[tuple[str, Mapping[str, Any]]] = []
    project, subset = select_here.select_here(
        place, dataset.read(photos), SMALL, lambda status, progress: heard.append((status.state, progress))
    )
    rows = selected(place, project, subset)
    assert len({row.task for row in rows}) == len(rows) == 16
    assert [(row.provenance, row.weight) for row in rows].count(("seed", 1.0)) == 8
    assert {row.class_name for row in rows} == {"dark", "grey", "light"}
    for row in rows:
        assert json.loads(row.data)["image"].startswith(f"{row.class_name}/"), "the class is that of the folder"
    drawn = [row for row in rows if row.provenance == "drawn"]
    assert {(row.model_version, row.round, row.stratum) for row in drawn} == {("iwes-loss-0", 1, "labelled")}
    assert ("training f", "epoch") in {(state, next(iter(told))) for state, told in heard if told}
    assert [state for state, told in heard if not told] == [
        "drawing",
        "training f",
        "drawing",
        "training f",
        "looking at every label",
        "",
    ]
    with place.store.read() as session:
        assert selecting(session, project, subsets.by_id(session, subset.id)) == []
    with pytest.raises(BadSubset, match=r"was begun with --k 8; give that, or another --name"):
        select_here.select_here(place, dataset.read(photos), replace(SMALL, k=4), unheard)


@pytest.mark.slow
def test_a_damaged_image_is_set_aside_and_taken_back_once_it_is_repaired(place: Workplace, photos: Path) -> None:
    damaged = photos / "grey" / "0001.png"
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:100])
    wish = Wish(size=45, seed_size=40, k=10)
    project, subset = select_here.select_here(place, dataset.read(photos), wish, unheard)
    assert len(selected(place, project, subset)) == 44
    with place.store.read() as session:
        assert list(pool.problems(session, project).values()) == [1]
    damaged.write_bytes(whole)
    again = select_here.select_here(place, dataset.read(photos), wish, unheard)
    assert (again[0].id, again[1].id) == (project.id, subset.id)
    assert len(selected(place, project, subset)) == 45


def test_one_seed_gives_one_subset_whatever_else_is_in_the_store(
    place: Workplace, store: Store, photos: Path, tmp_path: Path
) -> None:
    other_store = open_store(f"sqlite:///{tmp_path / 'other.db'}")
    other = Workplace(replace(place.settings, home=tmp_path / "other"), other_store)
    remembered(other, photos, replace(SMALL, rng_seed=9))
    remembered(other, photos, replace(SMALL, name="first"))
    found = []
    for where in (place, other):
        project, subset = remembered(where, photos)
        select_round(where, project.id, subset.id, 0)
        rows = selected(where, project, subset)
        found.append([row._replace(created="", updated="") for row in rows])  # when a store was told is its own
    other_store.close()
    assert found[0] == found[1] != []


def test_a_data_set_that_changed_keeps_its_numbers(place: Workplace, photos: Path) -> None:
    project, _ = remembered(place, photos)
    with place.store.read() as session:
        before = pool.studio_ids_by(session, project, "image")
    (photos / "dark" / "0000.png").unlink()
    (photos / "dark" / "0003.png").rename(photos / "light" / "0003.png")
    (photos / "aqua").mkdir()
    (photos / "aqua" / "1.png").write_bytes(picture())
    again, _ = remembered(place, photos)
    assert (again.id, again.classes) == (project.id, ["aqua", "dark", "grey", "light"])
    with place.store.read() as session:
        after = pool.studio_ids_by(session, project, "image")
        assert {path: after[path] for path in before} == before
        assert {after["aqua/1.png"], after["light/0003.png"]} == {46, 47}
        assert pool.size(session, project) == pool.came_labelled(session, again) == 45


def test_changed_labels_are_taken_over(place: Workplace, photos: Path, tmp_path: Path) -> None:
    table = tmp_path / "labels.csv"
    lines = [f"{path},{name}" for path, name in dataset.read(photos).labels.items()]
    table.write_text("\n".join(["image,label", *lines]))
    found = dataset.read(photos, str(table))
    project, _ = select_here._remember(place, found, SMALL, Options(rng_seed=3))
    table.write_text("\n".join(["image,label", f"{lines[0].partition(',')[0]},light", *lines[1:]]))
    found = dataset.read(photos, str(table))
    again, _ = select_here._remember(place, found, SMALL, Options(rng_seed=3))
    assert again.id == project.id
    with place.store.read() as session:
        assert list(pool.labels_that_came(session, project).values()).count("light") == 16


def test_other_labels_networks_or_seeds_are_other_projects(place: Workplace, photos: Path, tmp_path: Path) -> None:
    table = tmp_path / "labels.csv"
    table.write_text("image,label\ndark/0000.png,a\nlight/0002.png,b\n")
    wishes = [SMALL, replace(SMALL, rng_seed=4), replace(SMALL, network="resnet18"), replace(SMALL, way="head")]
    numbers = {select_here._number(dataset.read(photos), wish) for wish in wishes}
    numbers.add(select_here._number(dataset.read(photos, str(table)), SMALL))
    assert len(numbers) == 5


def test_what_cannot_be_selected_leaves_nothing_in_the_store(place: Workplace, photos: Path) -> None:
    whole = dataset.read(photos)
    for wish, error, said in (
        (replace(SMALL, size=46), BadSubset, "give a number from 2 to 45"),
        (replace(SMALL, name="Not this"), BadSubset, "small letters"),
        (replace(SMALL, network="no-such-network"), ConnectError, "--network"),
    ):
        with pytest.raises(error, match=said):
            select_here.select_here(place, whole, wish, unheard)
    for path in photos.rglob("*.png"):
        path.write_bytes(b"hello")
    with pytest.raises(DatasetError, match=r"no image can be read; of 20 below .* the first: .*looks like text"):
        select_here.select_here(place, whole, SMALL, unheard)
    with place.store.read() as session:
        assert projects.all_known(session) == []


STEPS = [f"{number}-{step}" for number in range(3) for step in ("select", "train-f", "train-g")]
ORDER = ["", *STEPS, "2-review", "2-show", "done"]
COMMAND = "from backend.cli import main; main()"


def a_run(home: Path, photos: Path, out: Path, rule: str) -> subprocess.Popen[bytes]:
    arguments = ["select", "--images", str(photos), "--size", "24", "--seed", "12", "--k", "6", "--out", str(out)]
    env = os.environ | {"IWES_HOME": str(home), "DATABASE_URL": "", "IWES_CACHE": ""}
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, *arguments, "--rule", rule, "--rng-seed", "5"],
        env=env,
        cwd=Path(__file__).parents[2],
        stdout=subprocess.DEVNULL,
    )


def written(out: Path) -> list[dict[str, Any]]:
    """Without when a store was first told of its images, which is its own."""
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    return [{name: value for name, value in row.items() if name not in ("created", "updated")} for row in rows]


def due(store: Store) -> str:
    """The step that a run is at, or is to begin with."""
    with store.read() as session:
        found = projects.all_known(session)
        if not found:
            return ""
        works = select_here.selecting(session, found[0], subsets.all_of(session, found[0])[0])
        return works[0].id.partition("-round-")[2] if works else "done"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("rule", "deaths"),
    [
        ("dis", ["0-train-f", "0-train-g", "1-select", "1-train-g", "2-train-f", "2-train-g"]),
        ("loss", ["0-select", "1-train-f"]),
    ],
)
def test_killed_again_and_again_the_same_command_selects_the_same_subset(
    tmp_path: Path, rule: str, deaths: list[str]
) -> None:
    photos = tmp_path / "photos"
    class_folders(photos, 150)
    (photos / "dark" / "0003.png").write_bytes(b"damaged")
    through, cut = tmp_path / "through.jsonl", tmp_path / "cut.jsonl"
    assert a_run(tmp_path / "through", photos, through, rule).wait() == 0
    store = open_store(Settings.from_env({"IWES_HOME": str(tmp_path / "cut")}).database_url)
    met = []
    for death in deaths:
        with a_run(tmp_path / "cut", photos, cut, rule) as run:
            while ORDER.index(now := due(store)) < ORDER.index(death) and run.poll() is None:
                time.sleep(0.02)
            time.sleep(0.05 * (len(met) % 2))  # now at the beginning of a step, now in its midst
            run.kill()
        met.append(now)
        assert run.returncode == -9, "it was not done yet"
        assert not cut.exists() or written(cut) == written(through), "a file is there only when it is whole"
    assert met == sorted(met, key=ORDER.index)
    assert len(set(met)) > 1
    assert a_run(tmp_path / "cut", photos, cut, rule).wait() == 0
    assert due(store) == "done"
    store.close()
    assert written(cut) == written(through)
    assert len(cut.read_text().splitlines()) == 24
    assert str(tmp_path) not in cut.read_text()


def test_the_rows_written_are_those_selected(place: Workplace, photos: Path, tmp_path: Path) -> None:
    project, subset = remembered(place, photos)
    select_round(place, project.id, subset.id, 0)
    assert export(place, project.id, ExportWish(subset=subset.name), tmp_path / "subset.jsonl").rows == 8
    with place.store.read() as session:
        drawn = {draw.task.studio_id for draw in rounds.by_number(session, project, 0, subset).draws}
    assert {row.task for row in selected(place, project, subset)} == drawn
