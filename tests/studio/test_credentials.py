"""Tokens: the kind is read off the token; a personal access token buys short-lived ones."""

from __future__ import annotations

import base64
import json

import pytest

from studio.client import tidy_url
from studio.credentials import LegacyToken, PersonalAccessToken, credential
from studio.errors import BadToken, Unreachable


def jwt(**claims: object) -> str:
    part = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"e30.{part}.sig"


def test_the_kind_of_a_token_is_read_off_it() -> None:
    assert isinstance(credential("a" * 40), LegacyToken)
    assert isinstance(credential(jwt(token_type="refresh")), PersonalAccessToken)
    assert isinstance(credential(jwt(token_type="access")), LegacyToken)


@pytest.mark.parametrize("token", ["", "  ", "two words", "söß"])
def test_a_token_that_cannot_be_one_is_refused_at_once(token: str) -> None:
    with pytest.raises(BadToken, match="copy it from Label Studio"):
        credential(token)


@pytest.mark.parametrize("url", ["", "label-studio:8080", "ftp://host", "http://"])
def test_an_address_that_cannot_be_one_is_refused_at_once(url: str) -> None:
    with pytest.raises(Unreachable, match="not a web address"):
        tidy_url(url)
