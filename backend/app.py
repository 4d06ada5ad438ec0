"""The Flask application: made anew from settings, with no state at module level."""

from __future__ import annotations

from flask import Flask

from backend.access import Callers
from backend.admin_token import admin_token
from backend.answers import answer_mistakes
from backend.api import api
from backend.contract import contract
from backend.dashboard.actions import actions
from backend.dashboard.live import Live
from backend.dashboard.pages import pages
from backend.dashboard.thumbnails import thumbnails
from backend.exports.kept import Kept
from backend.exports.routes import exports
from backend.headers import secure_headers
from backend.health import Health
from backend.metrics import Stock, metrics
from backend.openapi import openapi
from backend.people import admit_people
from backend.predictors import Predictors
from backend.sign_in import sign_in
from backend.tracing import Tracing
from jobs.intake import Intake
from jobs.measures import Tally
from jobs.settings import Settings
from jobs.workplace import Workplace
from store.database import open_store

MOST_BYTES = 64 * 2**20
"""Label Studio sends up to 5000 tasks in one message, and all selected tasks in one /predict."""
BUSY_SECONDS = 5.0
"""How long a request waits for its turn to write. Label Studio has given up after 1 s, but a label that is stored a
moment later need not wait for reconcile; any longer, and those who come after it would wait in vain as well."""


def create_app(settings: Settings) -> Flask:
    app = Flask("backend")
    app.config["MAX_CONTENT_LENGTH"] = MOST_BYTES
    place = Workplace(settings, open_store(settings.database_url, busy_seconds=BUSY_SECONDS))
    app.extensions["workplace"] = place
    app.extensions["callers"] = Callers(place.store)
    app.extensions["predictors"] = Predictors(place)
    app.extensions["intake"] = Intake(place)
    app.extensions["exports"] = Kept(place)
    app.extensions["health"] = Health(place)
    app.extensions["stock"] = Stock(place.store)
    app.extensions["live"] = Live()
    app.extensions["tally"] = Tally()
    app.wsgi_app = Tracing(app.wsgi_app, app.extensions["tally"])  # type: ignore[method-assign]
    app.register_blueprint(contract)
    app.register_blueprint(openapi)
    app.register_blueprint(metrics)
    app.register_blueprint(api)
    app.register_blueprint(sign_in)
    for pages_of_projects in (pages, actions, thumbnails):
        app.register_blueprint(pages_of_projects)
    app.register_blueprint(exports)
    admit_people(app, settings, admin_token(settings))
    answer_mistakes(app)
    secure_headers(app, encrypted=settings.backend_url.startswith("https://"))
    return app
