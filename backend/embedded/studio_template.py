"""A migrated, empty Label Studio database, made once and copied: the migrations of a new one take most of a minute."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from backend.embedded.label_studio import base_environment
from backend.embedded.process import Process

DATABASE = "label_studio.sqlite3"
MIGRATION_SECONDS = 600.0


def migrated_template(executable: Path, folder: Path) -> Path:
    """The data folder of a Label Studio that has its tables but no user; made under a lock if it is not there yet."""
    template = folder / installed_version(executable)
    if template.exists():
        return template
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / "lock"):
        if not template.exists():
            _migrate(executable, folder, template)
    return template


def copy_template(template: Path, data: Path) -> None:
    """Give `data` the template's database unless it has one. The next start creates whichever user it is told."""
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    if (data / DATABASE).exists():
        return
    partial = data / f"{DATABASE}.partial"
    shutil.copyfile(template / DATABASE, partial)
    partial.replace(data / DATABASE)


def installed_version(executable: Path) -> str:
    """Read from the environment's metadata: asking Label Studio itself takes five seconds."""
    for info in executable.parent.parent.glob("lib/python*/site-packages/label_studio-*.dist-info"):
        if found := re.fullmatch(r"label_studio-([^-]+)\.dist-info", info.name):
            return found[1]
    raise FileNotFoundError(f"no Label Studio is installed around {executable}: run `make setup`")


def _migrate(executable: Path, folder: Path, template: Path) -> None:
    """`version` is the one command that migrates and creates nobody; the secret key it leaves is not kept."""
    making = Path(tempfile.mkdtemp(prefix="making-", dir=folder))
    try:
        process = Process(
            "label-studio migrate", [executable, "version"], folder / "migrate.log", base_environment(making)
        )
        process.start()
        try:
            process.wait_until(lambda: process.exit_code == 0, MIGRATION_SECONDS, "its database was migrated")
        finally:
            process.stop()
        finished = making / "finished"
        finished.mkdir()
        (making / DATABASE).rename(finished / DATABASE)
        finished.rename(template)
    finally:
        shutil.rmtree(making, ignore_errors=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    migrated_template(Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute())
