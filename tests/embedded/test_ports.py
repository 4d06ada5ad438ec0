"""A busy port is named before a server silently takes another one."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.embedded.label_studio import LabelStudio, start_label_studio
from backend.embedded.ports import PortBusy, first_free, is_free, require_free
from backend.embedded.process import Stack


@pytest.fixture
def busy_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_busy_port_is_named_with_whom_it_was_wanted_for(busy_port: int) -> None:
    with pytest.raises(PortBusy, match=f"port {busy_port}, wanted for the backend, is taken"):
        require_free(busy_port, "the backend")


def test_next_free_port_is_found(busy_port: int) -> None:
    assert not is_free(busy_port)
    assert first_free(busy_port) > busy_port


def test_label_studio_is_not_started_on_a_busy_port(busy_port: int, tmp_path: Path) -> None:
    studio = LabelStudio(Path("label-studio"), tmp_path, busy_port, tmp_path, "a@example.com", "password", "t" * 40)
    with Stack() as stack, pytest.raises(PortBusy, match=f"port {busy_port}, wanted for Label Studio"):
        start_label_studio(stack, studio, tmp_path / "log")
