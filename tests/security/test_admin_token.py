"""The token people show: from the environment or made once, strong, and for its owner's eyes alone."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from backend.admin_token import admin_token, check_reach, sign_in_hint, token_file
from backend.up import start_backend
from jobs.settings import Settings, SettingsError


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.from_env({"IWES_HOME": str(tmp_path / "home")})


def test_the_environments_token_counts_and_no_file_is_made(settings: Settings) -> None:
    given = replace(settings, admin_token="x" * 20)
    assert admin_token(given) == "x" * 20
    assert not token_file(given).exists()


def test_a_token_is_made_once_for_its_owner_alone(settings: Settings) -> None:
    token = admin_token(settings)
    assert len(token) >= 43
    assert stat.S_IMODE(token_file(settings).stat().st_mode) == 0o600
    assert stat.S_IMODE(settings.home.stat().st_mode) == 0o700
    assert admin_token(settings) == token
    assert [path.name for path in settings.home.iterdir()] == ["admin-token"]


def test_processes_that_start_at_once_get_the_same_token(settings: Settings) -> None:
    code = (
        "from jobs.settings import Settings; from backend.admin_token import admin_token; "
        "input(); print(admin_token(Settings.from_env()))"
    )
    env = {**os.environ, **settings.as_env()}
    root = Path(__file__).parents[2]
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code], env=env, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.write("now\n")
        process.stdin.flush()
    tokens = {process.communicate(timeout=60)[0] for process in started}
    assert tokens == {token_file(settings).read_text()}
    assert [path.name for path in settings.home.iterdir()] == ["admin-token"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_token_that_others_may_have_read_is_refused(settings: Settings, mode: int) -> None:
    token = admin_token(settings)
    token_file(settings).chmod(mode)
    with pytest.raises(SettingsError, match="can be read by others") as refused:
        admin_token(settings)
    assert token not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "said"), [("", "is empty"), (" \n", "is empty"), ("short", "has 5 characters"), ("ä" * 20, "not ASCII")]
)
def test_a_file_without_a_good_token_is_refused(settings: Settings, content: str, said: str) -> None:
    settings.home.mkdir()
    token_file(settings).write_text(content)
    token_file(settings).chmod(0o600)
    with pytest.raises(SettingsError, match=said):
        admin_token(settings)


def test_a_home_that_cannot_be_written_to_is_named(settings: Settings) -> None:
    settings.home.write_text("a file")
    with pytest.raises(SettingsError, match=r"cannot be kept in .*admin-token.*set IWES_ADMIN_TOKEN"):
        admin_token(settings)


@pytest.mark.parametrize("token", ["short", "x" * 15, "with a blank in it", "ünïcödé-and-long-enough", "a\nb" * 10])
def test_a_token_that_can_be_guessed_or_not_be_sent_is_refused_at_start(token: str) -> None:
    with pytest.raises(SettingsError, match="IWES_ADMIN_TOKEN") as refused:
        Settings.from_env({"IWES_ADMIN_TOKEN": token})
    assert token not in str(refused.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.2.1", "::1", "localhost", "LOCALHOST"])
def test_a_loopback_address_needs_no_token_of_ones_own(settings: Settings, host: str) -> None:
    check_reach(replace(settings, host=host))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "8.8.8.8", "backend.example", "127.0.0.1.evil.test"])  # noqa: S104 - refused
def test_any_other_address_does(settings: Settings, host: str) -> None:
    open_wide = replace(settings, host=host)
    with pytest.raises(SettingsError, match=f"IWES_HOST is {host}.*IWES_ADMIN_TOKEN is not set"):
        check_reach(open_wide)
    check_reach(replace(open_wide, admin_token="x" * 20))


def test_people_are_told_where_to_sign_in_and_never_the_token(settings: Settings) -> None:
    token = admin_token(settings)
    hint = sign_in_hint(settings)
    assert "http://127.0.0.1:9090/login" in hint
    assert str(token_file(settings)) in hint
    assert token not in hint
    assert "IWES_ADMIN_TOKEN" in sign_in_hint(replace(settings, admin_token=token))


def test_up_starts_nothing_where_it_may_not_listen(settings: Settings) -> None:
    from backend.embedded.process import Stack

    with Stack() as stack, pytest.raises(SettingsError, match="IWES_ADMIN_TOKEN is not set"):
        start_backend(stack, replace(settings, host="0.0.0.0"))  # noqa: S104 - refused
    assert stack.processes == []
    assert not settings.home.exists()
