"""`iwes select --images` and `iwes export` as people call them: what they say, and what they say about mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from backend.status_page import show
from jobs import dataset, select_here
from jobs.connect import Options
from jobs.select_here import Wish
from jobs.status import QueueStatus, all_projects
from jobs.workplace import Workplace
from store import labels, projects
from store.database import Store
from store.tables import Mode
from tests.backend.command import Iwes
from tests.conftest import make_project
from tests.files import class_folders


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    class_folders(tmp_path / "photos", 30)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("select --size 9", "give --project for a project of Label Studio, or --images for a folder"),
        ("select --size 9 --url http://studio.test", "give --project"),
        ("select --size 9 --images photos", "--images needs --out"),
        ("select --size 9 --images photos --project 1 --out s.csv", "leave out --url, --project and --detach"),
        ("select --size 9 --images photos --url http://studio.test --out s.csv", "leave out --url"),
        ("select --size 9 --images photos --detach --out s.csv", "leave out --url, --project and --detach"),
        ("select --size 9 --url http://studio.test --project 1 --train head", "--train goes with --images only"),
        ("select --size 9 --url http://studio.test --project 1 --rng-seed 0", "--rng-seed goes with --images only"),
        ("select --size 9 --url http://studio.test --project 1 --out s.csv", "see `iwes export`"),
        ("select --size 9 --images nowhere --out s.csv", "iwes: --images nowhere: there is no such file or folder"),
        ("select --size 9 --images photos --out s.txt", "iwes: --out s.txt: give a file that ends in .jsonl"),
        ("select --size 99 --images photos --out s.csv", "give a number from 2 to 30"),
        ("select --size 9 --images photos --out s.csv --train half", "--train must be one of auto, full, head"),
        ("select --size 9 --images photos --labels label --out s.csv", "label is no table of images"),
        ("export --url http://studio.test --project 1", "missing option '--out'"),
        ("export --url http://studio.test --project 1 --out s.csv", "project 1 of http://studio.test is not known"),
    ],
)
def test_a_mistake_is_told_in_a_line(home: Path, iwes: Iwes, line: str, said: str) -> None:
    outcome = iwes(line)
    assert outcome.code in (1, 2)
    assert said in outcome.said
    assert "Traceback" not in outcome.said
    assert not list(home.glob("s.*"))


def test_label_studio_in_the_environment_is_no_contradiction(
    home: Path, monkeypatch: pytest.MonkeyPatch, iwes: Iwes
) -> None:
    monkeypatch.setenv("LABEL_STUDIO_URL", "http://studio.test")
    assert "there is no such file" in iwes("select --size 9 --images nowhere --out s.csv").said


def test_a_folder_is_selected_from_and_the_subset_written(home: Path, iwes: Iwes) -> None:
    line = "select --images photos --size 10 --rule loss --seed 10 --out subset.csv"
    outcome = iwes(line)
    text = outcome.said
    assert (outcome.code, text.startswith("30 images of 3 classes below ")) == (0, True)
    assert "subset loss: 10 tasks by IWeS-loss in 1 rounds" in text
    assert text.endswith("10 rows written to subset.csv")
    written = (home / "subset.csv").read_bytes()
    (home / "subset.csv").unlink()
    again = iwes(f"{line} --json")
    assert again.code == 0
    told = json.loads(again.out)
    assert (told["file"], told["subset"]["selected"], told["subset"]["rule"]) == ("subset.csv", 10, "loss")
    assert (home / "subset.csv").read_bytes() == written
    assert len(written.splitlines()) == 11
    assert str(home).encode() not in written


def test_status_shows_a_data_set_as_what_it_is(home: Path, place: Workplace, store: Store) -> None:
    select_here._remember(place, dataset.read(home / "photos"), Wish(size=9), Options(rng_seed=0))
    console = Console(width=240, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    show(all_projects(place), QueueStatus(False, 0, {}, []), console)
    text = console.export_text()
    assert f"photos  images below {home / 'photos'}" in text
    assert "30 images, 30 of them with a label" in text
    assert "subset dis by IWeS-dis: 0 of 9 tasks, drawing" in text
    assert "disconnected" not in text
    assert "Redis" not in text, "nothing here needs one"
    make_project(store)
    show(all_projects(place), QueueStatus(False, 0, {}, []), console)
    assert "Redis does not answer" in console.export_text()


def test_a_project_is_exported_whether_connected_or_not(home: Path, store: Store, iwes: Iwes) -> None:
    project = make_project(store, tasks=3, connected=False)
    with store.write() as session:
        labels.record_given(session, project, {1: "3", 2: "4"})
        projects.change_mode(session, project.id, Mode.ENT)
    line = "export --url http://studio.test/ --project 1 --out s.jsonl"
    assert iwes(line).said.startswith(
        "2 rows written to s.jsonl worth 2 equally weighted labels; the manifest: s.jsonl.m"
    )
    outcome = iwes(f"{line} --subset dis")
    assert (outcome.code, outcome.said) == (1, "iwes: --subset is 'dis', but the subsets of this project are: none")
