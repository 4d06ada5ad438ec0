"""The benchmark's own environment: peers are installed there, not next to the product."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
HERE = Path(__file__).resolve().parent


def enter(folder: Path) -> None:
    """Make the environment if it is not there yet and run the calling script again inside it, on one thread.

    Made with uv where that is installed, with venv and pip otherwise. Delete the folder to make it afresh.
    """
    os.environ.update(dict.fromkeys(THREADS, "1"))
    python = folder.resolve() / "bin" / "python"
    if Path(sys.prefix).resolve() == folder.resolve():
        return
    if not python.exists():
        print(f"making {folder} for the peers in benchmarks/requirements.txt", file=sys.stderr)
        wanted = ["-r", str(HERE / "requirements.txt")]
        uv = shutil.which("uv")
        if uv:
            subprocess.run([uv, "venv", "--python", sys.executable, str(folder)], check=True)
            subprocess.run([uv, "pip", "install", "--python", str(python), *wanted], check=True)
        else:
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            subprocess.run([str(python), "-m", "pip", "install", *wanted], check=True)
    os.execv(python, [str(python), *sys.argv])  # noqa: S606
