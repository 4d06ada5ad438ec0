"""Answers that wait for something only when the server asks for their first bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from flask import Flask, Response, current_app

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


class Later(Response):
    """What a view returns that has done all but wait. It calls `wait` when the server takes its first bytes, as WSGI
    allows; so a server may call the view of many requests before it waits for the first of them. A `wait` that fails is
    answered as a view that does."""

    def __init__(self, said: dict[str, Any], wait: Callable[[], object]) -> None:
        self._app: Flask = current_app._get_current_object()  # type: ignore[attr-defined]
        super().__init__(self._app.json.dumps(said), mimetype="application/json")
        self._wait = wait

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        answer: Response = self
        try:
            self._wait()
        except Exception as error:  # noqa: BLE001 - answered as any view's
            answer = self._mistake(environ, error)
        try:
            yield from Response.__call__(answer, environ, start_response)
        finally:
            answer.close()

    def _mistake(self, environ: WSGIEnvironment, error: Exception) -> Response:
        with self._app.request_context(environ):
            answer = self._app.make_response(self._app.handle_user_exception(error))
            return self._app.process_response(answer)
