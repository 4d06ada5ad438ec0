"""The `iwes` command as people call it, in this process."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import pytest

from backend import cli
from jobs.workplace import Workplace


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """All of it, in one line."""
        return " ".join((self.out + self.err).split())


class Iwes:
    """Called with a line as a shell would have it; its settings are the test's own."""

    def __init__(self, place: Workplace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        for name, value in place.settings.as_env().items():
            monkeypatch.setenv(name, value)
        for name in ("LABEL_STUDIO_URL", "LABEL_STUDIO_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, line: str) -> Outcome:
        self._monkeypatch.setattr(sys, "argv", ["iwes", *line.split()])
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            cli.main()
        said = self._capsys.readouterr()
        return Outcome(int(end.value.code or 0), said.out, said.err)
