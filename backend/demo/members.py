"""Ways into a Label Studio: a session with a legacy token, a logged-in one, and a new member's sign-up."""

from __future__ import annotations

import requests


class NotLetIn(RuntimeError):
    """Label Studio refused a log-in or a sign-up; the message says which."""


def token_session(token: str) -> requests.Session:
    session = _direct_session()
    session.headers["Authorization"] = f"Token {token}"
    return session


def log_in(url: str, email: str, password: str) -> requests.Session:
    """A session as a browser has it after the log-in page."""
    session = _direct_session()
    _submit(session, f"{url}/user/login/", {"email": email, "password": password, "persist_session": "on"})
    return session


def sign_up(url: str, admin: requests.Session, email: str, password: str) -> requests.Session:
    """A new member of the admin's organization, through the invite link, and their logged-in session."""
    answer = admin.get(f"{url}/api/invite", timeout=30)
    answer.raise_for_status()
    session = _direct_session()
    _submit(session, url + answer.json()["invite_url"], {"email": email, "password": password})
    return session


def _direct_session() -> requests.Session:
    """Without the environment's proxies and .netrc: the server is on this machine."""
    session = requests.Session()
    session.trust_env = False
    return session


def _submit(session: requests.Session, page: str, form: dict[str, str]) -> None:
    """Fill a form of Label Studio's; success redirects, a form shown again is a refusal."""
    session.get(page, timeout=30).raise_for_status()
    form = form | {"csrfmiddlewaretoken": session.cookies["csrftoken"]}
    answer = session.post(page, data=form, headers={"Referer": page}, allow_redirects=False, timeout=30)
    if answer.status_code != 302:
        raise NotLetIn(f"Label Studio did not accept {form['email']} at {page.partition('?')[0]}")
