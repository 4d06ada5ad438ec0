"""One Label Studio server: requests with its credential, and its refusals as typed errors."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import requests

from studio.credentials import credential
from studio.errors import (
    BadToken,
    Forbidden,
    NotFound,
    NotLabelStudio,
    Refused,
    ServerFault,
    StudioError,
    Unreachable,
)

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 120.0
"""Importing a queue into a large project takes Label Studio many seconds."""


class Client:
    """Safe to share between threads: a `requests` session and a credential, nothing else."""

    def __init__(self, url: str, token: str) -> None:
        self.url = tidy_url(url)
        self._credential = credential(token)
        self._session = requests.Session()
        adapter = requests.adapters.HTTPAdapter(pool_maxsize=16)
        self._session.mount("http://", adapter)
        self._session.mount("https://", adapter)

    def get(self, path: str, **params: Any) -> Any:
        return self._json(self.request("GET", path, params=params))

    def post(self, path: str, body: Any = None, **params: Any) -> Any:
        return self._json(self.request("POST", path, json=body, params=params))

    def patch(self, path: str, body: Any) -> Any:
        return self._json(self.request("PATCH", path, json=body))

    def delete(self, path: str, body: Any = None) -> None:
        self.request("DELETE", path, json=body)

    def request(self, method: str, path: str, **options: Any) -> requests.Response:
        """The answer to one call, or a `StudioError`. Never follows a redirect: it would carry the token along."""
        options.setdefault("timeout", (CONNECT_SECONDS, ANSWER_SECONDS))
        try:
            header = self._credential.header(self._session, self.url, ANSWER_SECONDS)
            answer = self._session.request(
                method, self.url + path, headers={"Authorization": header}, allow_redirects=False, **options
            )
        except requests.exceptions.RequestException as error:
            raise Unreachable(f"no answer from Label Studio at {self.url}: {_reason(error)}") from error
        if answer.status_code >= 300:
            raise self._refusal(method, path, answer)
        return answer

    def _json(self, answer: requests.Response) -> Any:
        if not answer.content:
            return None
        try:
            return answer.json()
        except ValueError as error:
            raise NotLabelStudio(
                f"{self.url} answers, but not as Label Studio does (no JSON); check the address"
            ) from error

    def _refusal(self, method: str, path: str, answer: requests.Response) -> StudioError:
        status = answer.status_code
        what = f"{method} {path.split('?')[0]}"
        said = _words(answer)
        if status == 401:
            return BadToken(
                f"{self.url} refuses the token ({said}). A legacy token works only where the organization allows it "
                "(Organization → API Tokens Settings); otherwise give a personal access token from Account & Settings"
            )
        if status == 403:
            return Forbidden(f"Label Studio does not allow {what}: {said}")
        if status == 404:
            return NotFound(f"Label Studio knows nothing at {what}: {said}")
        if status >= 500:
            return ServerFault(f"Label Studio failed at {what} (HTTP {status}): {said}")
        if 300 <= status < 400:
            return NotLabelStudio(f"{self.url} sends us elsewhere (HTTP {status}); give Label Studio's final address")
        return Refused(f"Label Studio refuses {what} (HTTP {status}): {said}")


def tidy_url(url: str) -> str:
    url = url.strip().rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Unreachable(f"{url!r} is not a web address; give it like http://localhost:8080")
    if "@" in parts.netloc:
        raise Unreachable("the address names a user or a password in front of its host; leave them out")
    return url


def _words(answer: requests.Response) -> str:
    """Label Studio's own explanation, on one line and short."""
    try:
        body = answer.json()
    except ValueError:
        return f"HTTP {answer.status_code}"
    if isinstance(body, dict):
        errors = body.get("validation_errors")
        body = errors or body.get("detail") or {k: v for k, v in body.items() if k not in ("id", "version", "exc_info")}
    return " ".join(str(body).split())[:300]


def _reason(error: Exception) -> str:
    if isinstance(error, requests.exceptions.Timeout):
        return "it took too long; is it running, and is the address right?"
    if isinstance(error, requests.exceptions.ConnectionError):
        return "the connection fails; is it running, and is the address right?"
    return type(error).__name__
