"""What is installed from a wheel, as in the Docker image, is whole: an editable install would hide what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.live import ROOT

UV = ROOT / ".tools" / "bin" / "uv"


@pytest.mark.slow
@pytest.mark.skipif(not UV.exists(), reason="needs uv, which `make setup` installs")
def test_a_store_can_be_made_from_the_wheel_alone(tmp_path: Path) -> None:
    subprocess.run([UV, "build", "--quiet", "--wheel", "--out-dir", tmp_path, ROOT], check=True, timeout=240)
    (wheel,) = tmp_path.glob("*.whl")
    ZipFile(wheel).extractall(tmp_path / "installed")
    code = f"import store.database; store.database.open_store('sqlite:///{tmp_path}/store.db'); print(store.__file__)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "installed")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip().startswith(str(tmp_path / "installed"))
