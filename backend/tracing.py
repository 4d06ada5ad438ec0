"""Every request can be followed: its id is in each of its log lines and in its answer, and webhooks are timed."""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Callable, Iterable
from itertools import count
from typing import TYPE_CHECKING, Any

from jobs import logs
from jobs.measures import Tally

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

log = logging.getLogger(__name__)

HEADER = "X-Request-Id"
_READABLE = re.compile(r"[\w.-]{1,64}", re.ASCII)


class Tracing:
    """Stands around the whole application: as hooks inside of Flask it would cost a webhook five times as much. What a
    request waited before it had a thread is not in its time."""

    def __init__(self, app: WSGIApplication, tally: Tally) -> None:
        self._app = app
        self._tally = tally
        # A random id for each request would cost it a call of the system, at which other threads take over.
        self._ids = map(f"{secrets.token_hex(4)}-{{:x}}".format, count(1))

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        began = time.perf_counter()
        shown = environ.get("HTTP_X_REQUEST_ID", "")
        request_id = shown if _READABLE.fullmatch(shown) else next(self._ids)
        status = 500

        def answer(line: str, headers: list[tuple[str, str]], *failure: Any) -> Callable[[bytes], object]:
            nonlocal status
            status = int(line[:3])
            headers.append((HEADER, request_id))
            return start_response(line, headers, *failure)

        token = logs.learn(request=request_id)
        try:
            return self._app(environ, answer)
        finally:
            self._tell(environ, status, time.perf_counter() - began)
            logs.forget(token)

    def _tell(self, environ: WSGIEnvironment, status: int, seconds: float) -> None:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        if method == "POST" and path == "/webhook":
            self._tally.webhook(_outcome(status), seconds)
        if status >= 400:
            log.info("%s %.100r answered %s in %.0f ms", method, path, status, seconds * 1000)


def _outcome(status: int) -> str:
    if status < 400:
        return "taken"
    return "refused" if status < 500 else "failed"
