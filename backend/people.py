"""Who may see the pages: people who show the admin token, or the cookie they got for it.

Nothing is open unless it says so here. Label Studio's own calls are let through to the contract, which asks each of
them for the project's secret.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from datetime import timedelta
from typing import cast

from flask import Flask, current_app, redirect, request, session, url_for
from flask.typing import ResponseReturnValue
from flask_wtf.csrf import CSRFProtect
from werkzeug.datastructures import WWWAuthenticate
from werkzeug.exceptions import TooManyRequests, Unauthorized

from backend.access import credentials
from backend.answers import wants_page
from backend.contract import contract
from backend.throttle import Throttle
from jobs.settings import Settings

OPEN = {"static", "sign_in.login"}
"""The endpoints that anybody may ask for, besides the contract's."""
SIGNED_IN = timedelta(hours=12)
MOST_BYTES = 2**20
"""No form of ours is larger."""
LONG = 32
"""Characters of a token that nobody guesses, however fast: such as we make them ourselves."""
_SINCE = "signed_in_at"


def admit_people(app: Flask, settings: Settings, token: str) -> None:
    """From now on every request is asked who it comes from."""
    encrypted = settings.backend_url.startswith("https://")
    app.config.update(
        SECRET_KEY=_derived(token, b"session cookie"),
        # cookies know no ports: on one machine Label Studio's pages would get and could overwrite one named alike
        SESSION_COOKIE_NAME="__Host-iwes" if encrypted else "iwes",
        SESSION_COOKIE_SECURE=encrypted,
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Lax",
        SESSION_REFRESH_EACH_REQUEST=False,
        PERMANENT_SESSION_LIFETIME=SIGNED_IN,
        WTF_CSRF_CHECK_DEFAULT=False,
        WTF_CSRF_TIME_LIMIT=None,  # as long as the cookie itself
        WTF_CSRF_SSL_STRICT=False,  # it compares with the host's name, which a proxy in front may have changed
    )
    app.extensions["people"] = People(token)
    CSRFProtect(app)
    app.jinja_env.globals["is_signed_in"] = is_signed_in
    app.before_request(_ask)


class People:
    """Knows the token by its digest alone, so that no page and no log can show it."""

    def __init__(self, token: str) -> None:
        self._digest = _digest(token)
        self._long = len(token) >= LONG
        self._throttle = Throttle()

    def is_token(self, shown: str) -> bool:
        """Raises TooManyRequests where too many wrong ones came from this address. Then a short token is not looked at
        either; a long one is let in at once, for behind a proxy all people come from one address, and whoever guesses
        there must not keep them out."""
        address = request.remote_addr or ""
        right = hmac.compare_digest(_digest(shown), self._digest)
        if (left := self._throttle.seconds_left(address)) and not (right and self._long):
            raise TooManyRequests(f"too many wrong tokens; try again in {left} s", retry_after=left)
        (self._throttle.right if right else self._throttle.wrong)(address)
        return right


def people() -> People:
    return cast(People, current_app.extensions["people"])


def enter() -> None:
    """Whatever the browser's session held before is gone: nobody can have planted it."""
    session.clear()
    session.permanent = True
    session[_SINCE] = int(time.time())


def leave() -> None:
    session.clear()


def is_signed_in() -> bool:
    since = session.get(_SINCE)
    return isinstance(since, int) and 0 <= time.time() - since < SIGNED_IN.total_seconds()


def _ask() -> ResponseReturnValue | None:
    """Before each request."""
    if request.endpoint is None or request.blueprint == contract.name:
        return None  # there is nothing at this address; or the contract asks for a secret of its own
    request.max_content_length = MOST_BYTES
    if _shows_token():
        return None
    if request.endpoint not in OPEN and not is_signed_in():
        return _send_away()
    csrf: CSRFProtect = current_app.extensions["csrf"]
    csrf.protect()
    return None


def _shows_token() -> bool:
    """A token in the header. No browser adds it by itself, so nobody else's page can have sent the request."""
    shown = credentials(request)
    if shown is None or shown.type != "bearer":
        return False
    if not people().is_token(shown.token or ""):
        raise _unknown("the token is not the one in force")
    return True


def _send_away() -> ResponseReturnValue:
    if wants_page() and request.method == "GET":
        asked = request.full_path.rstrip("?")
        return redirect(url_for("sign_in.login", next=None if asked == "/" else asked))
    raise _unknown("sign in at /login, or show the admin token: Authorization: Bearer …")


def _unknown(said: str) -> Unauthorized:
    return Unauthorized(said, www_authenticate=WWWAuthenticate("bearer", {"realm": "iwes"}))


def _derived(token: str, purpose: bytes) -> bytes:
    """The same in every web process and after a restart; another token signs everybody out."""
    return hmac.digest(token.encode(), b"iwes " + purpose, hashlib.sha256)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
