"""How a request that goes wrong is answered: in JSON for programs, with a page for people, never with a traceback."""

from __future__ import annotations

import logging

from flask import Flask, Response, jsonify, make_response, render_template, request
from flask_wtf.csrf import CSRFError
from gunicorn.http.errors import ParseException
from werkzeug.exceptions import ClientDisconnected, HTTPException

from backend.access import AccessDenied
from backend.contract import contract
from backend.exports.errors import ExportError, NotNow
from store import database
from store.projects import UnknownProject
from store.subsets import BadSubset
from studio.errors import BadMessage, StudioError

log = logging.getLogger(__name__)

AGAIN_SECONDS = 10
_PAGES = ["application/json", "text/html"]
_OF_THE_BODY = {"content-type", "content-length"}


def answer_mistakes(app: Flask) -> None:
    app.register_error_handler(BadMessage, lambda error: _say(400, str(error)))
    for wrong in (ExportError, BadSubset):
        app.register_error_handler(wrong, lambda error: _say(400, str(error)))
    app.register_error_handler(UnknownProject, lambda error: _say(404, str(error)))
    app.register_error_handler(NotNow, lambda error: _later(str(error)))
    app.register_error_handler(AccessDenied, _deny)
    app.register_error_handler(CSRFError, _doubt)
    app.register_error_handler(HTTPException, _refuse)
    for broken in (ClientDisconnected, ParseException):
        app.register_error_handler(broken, lambda error: _say(400, "the body breaks off, or its chunks are no HTTP"))
    for kind in (StudioError, *database.AWAY):
        app.register_error_handler(kind, _away)
    app.register_error_handler(Exception, _fault)


def wants_page() -> bool:
    """Whether a person's browser asks. What Label Studio calls is answered in JSON whatever it says it takes."""
    return request.blueprint != contract.name and request.accept_mimetypes.best_match(_PAGES) == "text/html"


def _deny(error: AccessDenied) -> Response:
    answer = _say(401, str(error))
    answer.www_authenticate.type = "basic"
    answer.www_authenticate["realm"] = "iwes"
    return answer


def _doubt(error: CSRFError) -> Response:
    log.info("a form is refused: %s", error.description)
    return _say(400, "this form does not come from a page of ours, or that page is too old; load it anew and try again")


def _refuse(error: HTTPException) -> Response:
    answer = _say(error.code or 500, error.description or error.name)
    answer.headers.extend([(name, value) for name, value in error.get_headers() if name.lower() not in _OF_THE_BODY])
    return answer


def _away(error: Exception) -> Response:
    """Label Studio does not serve its images, or the database does not answer: that passes."""
    log.warning("a request cannot be answered now", exc_info=error)
    return _later("the store or Label Studio does not answer this backend just now; try again later")


def _later(message: str) -> Response:
    answer = _say(503, message)
    answer.headers["Retry-After"] = str(AGAIN_SECONDS)
    return answer


def _fault(error: Exception) -> Response:
    """The details go to the log; a client learns only that it was not its fault."""
    log.error("a request failed", exc_info=error)
    return _say(500, "the backend failed at this request; its log says why")


def _say(status: int, message: str) -> Response:
    if wants_page():
        return make_response(render_template("mistake.html", status=status, message=message), status)
    return make_response(jsonify({"error": message}), status)
