"""The two kinds of token Label Studio hands out, each turned into the header its calls need."""

from __future__ import annotations

import base64
import binascii
import json
import time
from typing import Protocol

import requests

from studio.errors import BadToken, NotLabelStudio, ServerFault

RENEW_BEFORE = 60.0
"""Seconds before an access token's end at which a new one is fetched."""
ACCESS_SECONDS = 300.0
"""What an access token lives where it does not say."""


class Credential(Protocol):
    def header(self, session: requests.Session, url: str, timeout: float) -> str: ...


class LegacyToken:
    """A token that is its own header; new organizations have this kind switched off."""

    def __init__(self, token: str) -> None:
        self._token = token

    def header(self, session: requests.Session, url: str, timeout: float) -> str:
        return f"Token {self._token}"


class PersonalAccessToken:
    """A long-lived token that only buys access tokens of five minutes."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._access = ""
        self._ends = -float("inf")
        """By our own clock since it was fetched: Label Studio's may show another time, and either may be set."""

    def header(self, session: requests.Session, url: str, timeout: float) -> str:
        if time.monotonic() > self._ends - RENEW_BEFORE:
            self._renew(session, url, timeout)
        return f"Bearer {self._access}"

    def _renew(self, session: requests.Session, url: str, timeout: float) -> None:
        answer = session.post(
            f"{url}/api/token/refresh/", json={"refresh": self._token}, timeout=timeout, allow_redirects=False
        )
        if answer.status_code >= 500:
            raise ServerFault(
                f"Label Studio at {url} failed when asked for an access token (HTTP {answer.status_code})"
            )
        if answer.status_code not in (200, 400, 401, 403):
            raise NotLabelStudio(
                f"{url} answers, but not as Label Studio does (HTTP {answer.status_code}); check the address"
            )
        if answer.status_code != 200:
            raise BadToken(
                f"{url} refuses the personal access token (HTTP {answer.status_code}): it may be revoked; "
                "make a new one in Label Studio under Account & Settings → Personal Access Token"
            )
        fetched = time.monotonic()
        try:
            self._access = str(answer.json()["access"])
        except (ValueError, KeyError, TypeError) as error:
            raise NotLabelStudio(f"{url} answers, but not as Label Studio does; check the address") from error
        self._ends = fetched + _lifetime(self._access)


def credential(token: str) -> Credential:
    """The kind is read off the token itself: only a personal access token is a JWT."""
    token = token.strip()
    if not token or not token.isascii() or any(c.isspace() for c in token):
        raise BadToken("the token is empty or holds blanks; copy it from Label Studio under Account & Settings")
    return PersonalAccessToken(token) if _claims(token).get("token_type") == "refresh" else LegacyToken(token)


def _lifetime(access: str) -> float:
    claims = _claims(access)
    begins, ends = claims.get("iat"), claims.get("exp")
    if isinstance(begins, int | float) and isinstance(ends, int | float) and ends > begins:
        return float(ends - begins)
    return ACCESS_SECONDS


def _claims(token: str) -> dict[str, object]:
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, binascii.Error):
        return {}
    return claims if isinstance(claims, dict) else {}
