"""The Flask application: made anew from settings, with no state at module level."""

from __future__ import annotations

import logging

from flask import Flask, Response, jsonify
from werkzeug.exceptions import HTTPException

from backend.access import AccessDenied
from backend.contract import contract
from backend.predictors import Predictors
from jobs.settings import Settings
from jobs.workplace import Workplace
from store.database import open_store
from studio.errors import BadMessage

log = logging.getLogger(__name__)

MOST_BYTES = 64 * 2**20
"""Label Studio sends up to 5000 tasks in one message, and all selected tasks in one /predict."""


def create_app(settings: Settings) -> Flask:
    app = Flask("backend")
    app.config["MAX_CONTENT_LENGTH"] = MOST_BYTES
    place = Workplace(settings, open_store(settings.database_url))
    app.extensions["workplace"] = place
    app.extensions["predictors"] = Predictors(place)
    app.register_blueprint(contract)
    app.register_error_handler(BadMessage, lambda error: _say(400, str(error)))
    app.register_error_handler(AccessDenied, lambda error: _say(401, str(error)))
    app.register_error_handler(HTTPException, lambda error: _say(error.code or 500, error.description or error.name))
    app.register_error_handler(Exception, _fault)
    return app


def _fault(error: Exception) -> tuple[Response, int]:
    """The details go to the log; a client learns only that it was not its fault."""
    log.error("a request failed", exc_info=error)
    return _say(500, "the backend failed at this request; its log says why")


def _say(status: int, message: str) -> tuple[Response, int]:
    return jsonify({"error": message}), status
