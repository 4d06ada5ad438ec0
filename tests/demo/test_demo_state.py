"""What a demo keeps between two starts."""

from __future__ import annotations

from pathlib import Path

from backend.demo.state import State


def test_state_is_kept_for_its_owner_only(tmp_path: Path) -> None:
    state = State(studio_port=20080, backend_port=20090)
    state.projects["digits"] = 7
    state.save(tmp_path)
    assert State.load(tmp_path) == state
    assert (tmp_path / "state.json").stat().st_mode & 0o777 == 0o600


def test_each_demo_has_credentials_of_its_own() -> None:
    one, other = State(1, 2), State(1, 2)
    assert one.password != other.password
    assert one.token != other.token
    assert len(one.token) == 40


def test_first_start_has_no_state(tmp_path: Path) -> None:
    assert State.load(tmp_path) is None
