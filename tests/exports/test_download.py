"""The weighted training set over HTTP: with credentials, while it is written, and on from where it broke off."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from backend.admin_token import admin_token
from backend.app import create_app
from backend.exports import export as exporting
from backend.exports.kept import MOST_DOWNLOADS
from backend.exports.wish import Format, Wish
from jobs.settings import Settings
from jobs.workplace import Workplace
from store.database import Store
from store.tables import Project, Subset
from tests.conftest import a_label, put_label


class Client(FlaskClient):
    """Takes each download to its end."""

    def open(self, *args: Any, **options: Any) -> TestResponse:
        return super().open(*args, **({"buffered": True} | options))


@pytest.fixture
def client(settings: Settings, store: Store) -> FlaskClient:
    app = create_app(replace(settings, redis_url="redis://127.0.0.1:1"))
    client = Client(app)
    client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {admin_token(settings)}"
    return client


@pytest.fixture
def address(project: Project, subset: Subset) -> str:
    return f"/projects/{project.id}/export"


@pytest.mark.parametrize("kind", [Format.JSONL, Format.CSV, Format.PARQUET, Format.LABEL_STUDIO])
def test_a_download_has_the_bytes_of_the_file(
    client: FlaskClient, place: Workplace, address: str, project: Project, tmp_path: Path, kind: Format
) -> None:
    out = tmp_path / f"set{kind.suffix}"
    exporting.export(place, project.id, Wish(kind), out)
    first, second = (client.get(f"{address}?format={kind}") for _ in range(2))
    assert first.data == second.data == out.read_bytes()
    assert first.headers["ETag"] == second.headers["ETag"]
    assert first.headers["Content-Disposition"] == f"attachment; filename=project-1{kind.suffix}"
    assert second.content_length == len(first.data), "once it is written, its length is known"
    digest = json.loads(out.with_name(f"{out.name}.manifest.json").read_bytes())["row_digest"]
    assert client.get(f"{address}/manifest?format={kind}").json["row_digest"] == digest


def test_a_download_that_broke_off_goes_on_with_the_same_bytes(
    client: FlaskClient, address: str, store: Store, project: Project
) -> None:
    whole = client.get(address)
    tag = whole.headers["ETag"]
    assert whole.headers["Accept-Ranges"] == "bytes"
    put_label(store, project, 2, a_label(102, "cat", minutes=5))
    rest = client.get(address, headers={"Range": "bytes=100-", "If-Range": tag})
    assert rest.status_code == 206
    assert rest.data == whole.data[100:], "as it was when the download began, though a label has changed since"
    assert client.get(address).headers["ETag"] != tag


def test_whoever_asks_for_the_rest_of_a_set_that_is_gone_gets_the_new_one_from_its_beginning(
    client: FlaskClient, address: str, store: Store, settings: Settings, project: Project
) -> None:
    whole = client.get(address)
    for path in settings.exports_folder.iterdir():
        path.unlink()
    again = client.get(address, headers={"Range": "bytes=100-", "If-Range": whole.headers["ETag"]})
    assert (again.status_code, again.data) == (206, whole.data[100:]), "the same state is written anew, with its bytes"
    for path in settings.exports_folder.iterdir():
        path.unlink()
    put_label(store, project, 2, a_label(102, "cat", minutes=5))
    changed = client.get(address, headers={"Range": "bytes=100-", "If-Range": whole.headers["ETag"]})
    assert changed.status_code == 200
    assert changed.headers["ETag"] != whole.headers["ETag"]
    assert changed.data != whole.data


def test_a_set_that_has_not_changed_need_not_be_sent_again(client: FlaskClient, address: str) -> None:
    tag = client.get(address).headers["ETag"]
    assert client.get(address, headers={"If-None-Match": tag}).status_code == 304
    assert client.get(address, headers={"Range": "bytes=99999999-"}).status_code == 416


def test_nobody_downloads_without_credentials(client: FlaskClient, address: str) -> None:
    client.environ_base.pop("HTTP_AUTHORIZATION")
    assert client.get(address).status_code == 401
    assert client.get(f"{address}/manifest").status_code == 401


@pytest.mark.parametrize(
    ("asked", "status", "said"),
    [
        ("format=xlsx", 400, "format is 'xlsx'; give one of jsonl"),
        ("weights=heavy", 400, "weights is 'heavy'; give one of paper"),
        ("rounds=3-1", 400, "rounds is '3-1'"),
        ("rounds=0-999999", 400, "rounds is"),
        ("stratum=both", 400, "stratum is 'both'; give one of labelled, unlabelled"),
        ("as_of=yesterday", 400, "as_of is 'yesterday'; give a time"),
        ("subset=../../etc", 400, "the subsets of this project are: dis"),
        ("out=/etc/passwd", 400, "out is not known here"),
    ],
)
def test_a_wrong_wish_is_told_what_to_change(
    client: FlaskClient, address: str, asked: str, status: int, said: str
) -> None:
    answer = client.get(f"{address}?{asked}")
    assert answer.status_code == status
    assert said in answer.json["error"]


def test_there_is_no_export_of_a_project_that_is_not_there(client: FlaskClient, store: Store) -> None:
    assert client.get("/projects/77/export").status_code == 404


def test_downloads_leave_threads_for_webhooks(client: FlaskClient, address: str) -> None:
    under_way = [client.get(address, buffered=False) for _ in range(MOST_DOWNLOADS)]
    refused = client.get(address)
    assert refused.status_code == 503
    assert int(refused.headers["Retry-After"]) > 0
    under_way[0].close()
    assert client.get(address).status_code == 200


def test_what_a_killed_writer_left_is_never_sent(client: FlaskClient, address: str, settings: Settings) -> None:
    whole = client.get(address)
    name = whole.headers["ETag"].strip('"')
    (settings.exports_folder / name).unlink()
    left = settings.exports_folder / f"{name}.1.partial"
    left.write_bytes(whole.data[:50])
    assert client.get(address).data == whole.data
    assert not left.exists()


def test_an_export_that_fails_is_answered_as_a_fault_and_can_be_had_later(
    client: FlaskClient, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, lines: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setitem(exporting._TABLES, Format.JSONL, full)
        assert client.get(address).status_code == 500
    assert client.get(address).status_code == 200


def test_old_downloads_make_room(
    client: FlaskClient, address: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.get(address)
    monkeypatch.setattr(Settings, "shelf_bytes", 1)
    client.get(f"{address}?format=csv")
    monkeypatch.setattr(Settings, "shelf_bytes", 2**30)
    client.get(f"{address}?format=label-studio")
    assert sum(not path.name.endswith("json") for path in settings.exports_folder.iterdir()) == 2


def test_many_files_come_as_one_zip(client: FlaskClient, address: str) -> None:
    answer = client.get(f"{address}?format=imagefolder")
    assert answer.status_code == 503, "their Label Studio is not there"
