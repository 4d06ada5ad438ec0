"""A real Label Studio for the tests here, started once from a copy of the migrated template."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.embedded.label_studio import LabelStudio, await_label_studio, start_label_studio
from backend.embedded.ports import any_free
from backend.embedded.process import Stack
from backend.embedded.studio_template import copy_template, migrated_template

ROOT = Path(__file__).parents[2]
EXECUTABLE = ROOT / ".venv-studio" / "bin" / "label-studio"


@pytest.fixture(scope="session")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabelStudio]:
    if not EXECUTABLE.exists():
        pytest.skip("no Label Studio here: run `make setup`")
    folder = tmp_path_factory.mktemp("label-studio")
    server = LabelStudio(
        executable=EXECUTABLE,
        data=folder / "data",
        port=any_free(),
        files_root=folder / "files",
        email="owner@example.com",
        password="owner-password-1",
        token=secrets.token_hex(20),
    )
    server.files_root.mkdir()
    copy_template(migrated_template(EXECUTABLE, ROOT / ".cache" / "label-studio"), server.data)
    with Stack() as stack:
        await_label_studio(start_label_studio(stack, server, folder / "label-studio.log"), server)
        yield server
