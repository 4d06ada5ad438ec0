"""Every request can be followed: its id is in each of its log lines and in its answer, and webhooks are timed."""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
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
    request waited before the web server began with it is not in its time."""

    def __init__(self, app: WSGIApplication, tally: Tally) -> None:
        self._app = app
        self._tally = tally
        # A random id for each request would cost it a call of the system, at which other threads take over.
        self._ids = map(f"{secrets.token_hex(4)}-{{:x}}".format, count(1))

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        shown = environ.get("HTTP_X_REQUEST_ID", "")
        trace = _Trace(shown if _READABLE.fullmatch(shown) else next(self._ids), start_response)
        with logs.about(request=trace.request_id):
            try:
                answer = self._app(environ, trace.start)
                if trace.status is None:
                    return self._found_out(environ, trace, answer, logs.known())
            except BaseException:
                trace.status = 500
                raise
            finally:
                if trace.status is not None:
                    self._tell(environ, trace)
        return answer

    def _found_out(
        self, environ: WSGIEnvironment, trace: _Trace, answer: Iterable[bytes], known: logs.Facts
    ) -> Iterator[bytes]:
        """An answer that is known only when its first bytes are asked for (`backend.later`)."""
        with logs.about(**known):
            try:
                whole = b"".join(answer)
            finally:
                self._tell(environ, trace)
        yield whole

    def _tell(self, environ: WSGIEnvironment, trace: _Trace) -> None:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        status, seconds = trace.status or 500, time.perf_counter() - trace.began
        if method == "POST" and path == "/webhook":
            self._tally.webhook(_outcome(status), seconds)
        if status >= 400:
            log.info("%s %.100r answered %s in %.0f ms", method, path, status, seconds * 1000)


class _Trace:
    """A request on its way."""

    def __init__(self, request_id: str, start_response: StartResponse) -> None:
        self.request_id = request_id
        self.began = time.perf_counter()
        self.status: int | None = None
        self._start_response = start_response

    def start(self, line: str, headers: list[tuple[str, str]], *failure: Any) -> Callable[[bytes], object]:
        self.status = int(line[:3])
        headers.append((HEADER, self.request_id))
        return self._start_response(line, headers, *failure)


def _outcome(status: int) -> str:
    if status < 400:
        return "taken"
    return "refused" if status < 500 else "failed"
