"""The folder of one demo: everything it keeps, and the lock that keeps a second one out."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from backend.demo.state import State
from backend.embedded.label_studio import LabelStudio
from jobs.settings import Settings


class DemoRuns(RuntimeError):
    """Another demo uses the folder."""


@dataclass(frozen=True)
class Home:
    path: Path

    @property
    def pictures(self) -> Path:
        return self.path / "pictures"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def settings(self, state: State) -> Settings:
        """The store and the checkpoints stay in here whatever the environment says; a REDIS_URL in it is used."""
        env = {"IWES_HOME": str(self.path), "IWES_PORT": str(state.backend_port)}
        return Settings.from_env(env | {"REDIS_URL": os.environ.get("REDIS_URL", "")})

    def label_studio(self, state: State, executable: Path) -> LabelStudio:
        self.pictures.mkdir(exist_ok=True)
        return LabelStudio(
            executable=executable,
            data=self.path / "label-studio",
            port=state.studio_port,
            files_root=self.pictures,
            email=state.email,
            password=state.password,
            token=state.token,
        )

    @contextmanager
    def alone(self) -> Iterator[None]:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.path / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise DemoRuns(f"a demo already runs in {self.path}: stop it first") from None
        finally:
            os.close(descriptor)
