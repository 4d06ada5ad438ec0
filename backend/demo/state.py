"""What a demo keeps between two starts: ports, credentials and project ids, in a file only its owner can read."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path

FILE = "state.json"


@dataclass
class State:
    studio_port: int
    backend_port: int
    email: str = "admin@example.com"
    password: str = field(default_factory=lambda: secrets.token_urlsafe(9))
    token: str = field(default_factory=lambda: secrets.token_hex(20))
    projects: dict[str, int] = field(default_factory=dict)
    """Label Studio's project ids by the name of their pictures."""

    @classmethod
    def load(cls, home: Path) -> State | None:
        path = home / FILE
        return cls(**json.loads(path.read_text())) if path.exists() else None

    def save(self, home: Path) -> None:
        partial = home / f"{FILE}.partial"
        partial.unlink(missing_ok=True)
        descriptor = os.open(partial, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(asdict(self), file, indent=2)
        partial.replace(home / FILE)
