"""The benchmark's own environment: peers are installed there, not next to the product."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

REQUIREMENTS = Path(__file__).parent / "requirements.txt"


class NoPeers(RuntimeError):
    """The environment could not be made; the message says what failed."""


def python(folder: Path) -> Path:
    """Of the environment, which is made where it is not there yet, or was left half made, or other peers are wanted.

    Made with uv where that is installed, with venv and pip otherwise. Delete the folder to make it afresh.
    Raises NoPeers.
    """
    inside = folder.resolve() / "bin" / "python"
    mark, wanted = folder / ".installed", REQUIREMENTS.read_text()
    if not (inside.exists() and mark.exists() and mark.read_text() == wanted):
        print(f"making {folder} for the peers in {REQUIREMENTS.name}", file=sys.stderr)
        try:
            _make(folder, inside)
        except subprocess.CalledProcessError as error:
            raise NoPeers(f"{folder} could not be made: {error}") from error
        mark.write_text(wanted)
    return inside


def versions(folder: Path) -> dict[str, str]:
    """Of the peers, and of what all of them calculate with."""
    places = [str(place) for place in folder.glob("lib/python*/site-packages")]
    names = ["numpy", "scipy", *(line.partition("==")[0] for line in REQUIREMENTS.read_text().split())]
    found = {name: [one.version for one in distributions(name=name, path=places)] for name in names}
    return {"python": sys.version.split()[0], **{name: found[name][0] for name in names if found[name]}}


def _make(folder: Path, inside: Path) -> None:
    wanted = ["-r", str(REQUIREMENTS)]
    uv = shutil.which("uv")
    if uv:
        subprocess.run([uv, "venv", "--allow-existing", "--python", sys.executable, str(folder)], check=True)
        subprocess.run([uv, "pip", "install", "--python", str(inside), *wanted], check=True)
    else:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(inside), "-m", "pip", "install", *wanted], check=True)
