"""What this application answers to, as an OpenAPI description. A new route gets its entry in PATHS; a test compares
them with the application's own, and others send what the description allows and what it forbids."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from flask import Blueprint

from backend.exports.routes import KINDS
from backend.exports.wish import Format, Weights
from store.weighted_set import STRATA
from studio.connection import SECRET_HEADER
from studio.messages import LARGEST_ID, MOST_ITEMS, YEARS

openapi = Blueprint("openapi", __name__)

Part = dict[str, Any]

ANYBODY: list[Part] = []
LABEL_STUDIO: list[Part] = [{"secret_header": []}, {"secret_password": []}]
PEOPLE: list[Part] = [{"token": []}, {"session": []}]
"""Who may call: one of these has to be shown."""


@openapi.get("/openapi.json")
def description() -> Part:
    return {
        "openapi": "3.1.0",
        "info": {"title": "IWeS for Label Studio", "version": "1"},
        "paths": PATHS,
        "components": {"schemas": SCHEMAS, "securitySchemes": SECURITY},
    }


def operation(
    summary: str, who: list[Part], answer: Part | None, *, body: Part | None = None, others: str = "", **more: Any
) -> Part:
    """One method of a path. Without an answer it sends the browser on. `others` are the further statuses it may have,
    besides those of callers who do not show who they are."""
    statuses = [*others.split(), *(["401"] if who else []), *(["302", "429"] if who is PEOPLE else [])]
    return {
        "summary": summary,
        "security": who,
        **({"requestBody": body} if body else {}),
        "responses": {
            **({"200": {"description": "Done", "content": answer}} if answer else {}),
            **{status: _other(status, pages=who is not LABEL_STUDIO) for status in sorted(set(statuses))},
        },
        **more,
    }


def as_json(schema: Part) -> Part:
    return {"application/json": {"schema": schema}}


def as_text(kind: str) -> Part:
    return {kind: {"schema": TEXT}}


def object_of(required: Part, optional: Part | None = None, **more: Any) -> Part:
    """An object that may have further fields, as those of Label Studio do."""
    return {"type": "object", "required": list(required), "properties": required | (optional or {}), **more}


def list_of(item: Part, **more: Any) -> Part:
    return {"type": "array", "items": item, **more}


def _other(status: str, *, pages: bool) -> Part:
    """A refusal; people's browsers get it as a page."""
    content = as_json(_ref("Error")) | (as_text("text/html") if pages else {})
    return {"description": HTTPStatus(int(status)).phrase, "content": content}


def _ref(name: str) -> Part:
    return {"$ref": f"#/components/schemas/{name}"}


def _or_null(schema: Part, **more: Any) -> Part:
    return {"anyOf": [schema, {"type": "null"}], **more}


def _event(actions: list[str], **fields: str) -> Part:
    told = {
        name: {"anyOf": [_ref(schema), list_of(_ref(schema), maxItems=MOST_ITEMS)]} for name, schema in fields.items()
    }
    return object_of({"action": {"enum": actions}, "project": _ref("Project"), **told})


TEXT: Part = {"type": "string"}
FLAG: Part = {"type": ["boolean", "null"]}
COUNT: Part = {"type": "integer", "minimum": 0}
SHARE: Part = {"type": "number", "minimum": 0, "maximum": 1}
_FIGURES: Part = {"value": SHARE, "low": SHARE, "high": SHARE, "effective_size": {"type": "number", "minimum": 0}}
_ASKED = ("asked", "answered", "skipped", "lost", "missing")

_ANNOTATED = ["ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATION_UPDATED"]
_TOLD = [*_ANNOTATED, "TASKS_CREATED", "ANNOTATIONS_DELETED", "TASKS_DELETED"]
_OF_PROJECT = _or_null(_ref("Id"), description="The same as project.id of the message.")

SCHEMAS: Part = {
    "Error": object_of({"error": TEXT}, description="Names the field, and says what was expected of it."),
    "Id": {"type": "integer", "minimum": 1, "maximum": LARGEST_ID},
    "Time": {**TEXT, "format": "date-time", "description": f"From the years {YEARS[0]} to {YEARS[-1]}."},
    "Identified": object_of({"id": _ref("Id")}),
    "Project": object_of({"id": _ref("Id")}, description="The one whose secret is shown."),
    "Task": object_of({"id": _ref("Id"), "data": {"type": "object"}}, {"project": _OF_PROJECT}),
    "Annotation": object_of(
        {"id": _ref("Id"), "task": _ref("Id"), "result": list_of({}), "created_at": _ref("Time")},
        {
            "updated_at": _or_null(_ref("Time")),
            "was_cancelled": FLAG,
            "ground_truth": FLAG,
            "completed_by": {"description": "An id, or an object with one; all else counts as unknown."},
            "project": _OF_PROJECT,
        },
    ),
    "Event": {
        "description": "As Label Studio sends it. Of an action that is not listed here nothing more is read.",
        "oneOf": [
            _event(_ANNOTATED, annotation="Annotation", task="Task"),
            _event(["TASKS_CREATED"], tasks="Task"),
            _event(["ANNOTATIONS_DELETED"], annotations="Identified"),
            _event(["TASKS_DELETED"], tasks="Identified"),
            object_of({"action": {**TEXT, "not": {"enum": _TOLD}}, "project": _ref("Project")}),
        ],
    },
    "PredictionRequest": object_of(
        {"tasks": list_of(object_of({"data": {"type": "object"}}, {"id": _or_null(_ref("Id"))}))}
    ),
    "Prediction": object_of(
        {
            "result": list_of({"type": "object"}, maxItems=1),
            "score": {"type": "number", "minimum": 0, "maximum": 1},
            "model_version": TEXT,
        },
        description="Its result is empty where the image cannot be read, and before the first training.",
    ),
    "Share": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "ProjectStatus": object_of(
        {"id": _ref("Id"), "title": TEXT, "mode": TEXT, "tasks": COUNT, "unlabelled": COUNT, "connected": FLAG}
        | {"rounds": list_of({"type": "object"}), "subsets": list_of({"type": "object"})}
        | {"estimates": _ref("Estimates")}
    ),
    "Accuracy": object_of(
        {"round": COUNT, "model_version": TEXT, "trained_on": _or_null(COUNT), "rest": COUNT, "complete": FLAG}
        | _FIGURES
        | {"worth": {"type": "number", "minimum": 0}, "response": object_of(dict.fromkeys(_ASKED, COUNT))},
        description="Of the model that drew a round, on what was unlabelled then, with a 95 % interval.",
    ),
    "Estimates": object_of(
        {"tasks": COUNT, "labelled": COUNT, "skipped": COUNT, "half_width": SHARE, "target": _or_null(SHARE)}
        | {"current_model": _or_null(TEXT), "said": TEXT, "labels_needed": _or_null(COUNT)}
        | {"curve": list_of(_ref("Accuracy")), "judged": _or_null(_ref("Accuracy"))}
        | {"advice": _or_null(object_of({"stop": FLAG, "reason": TEXT}))}
        | {"class_balance": list_of(object_of({"class": TEXT, "known": COUNT} | _FIGURES))}
        | {
            "recall": list_of(
                object_of(
                    {"class": TEXT, "labels": COUNT, "recall": _or_null(object_of(_FIGURES)), "reason": _or_null(TEXT)}
                )
            )
        }
    ),
    "Health": object_of(
        {
            "status": {"enum": ["UP", "DOWN"]},
            "model_class": TEXT,
            "state": {"enum": ["ok", "degraded", "down"]},
            "problems": list_of(TEXT),
        }
    ),
}

SECURITY: Part = {
    "secret_header": {"type": "apiKey", "in": "header", "name": SECRET_HEADER, "description": "As webhooks show it."},
    "secret_password": {"type": "http", "scheme": "basic", "description": "As Label Studio's other calls show it."},
    "token": {"type": "http", "scheme": "bearer", "description": "The admin token."},
    "session": {"type": "apiKey", "in": "cookie", "name": "iwes", "description": "As one gets it at /login."},
}

_PROJECT_ID: Part = {"name": "project_id", "in": "path", "required": True, "schema": _ref("Id")}
_AIMS: list[Part] = [
    {"name": name, "in": "query", "schema": _ref("Share"), "description": said}
    for name, said in (
        ("half_width", "How exactly the accuracy is to be known; 0.02 where it is left out."),
        ("target", "The accuracy wanted."),
    )
]
_PAGE = as_text("text/html")


def _export(summary: str, answer: Part, **more: Any) -> Part:
    texts = {
        "format": {"enum": [str(found) for found in Format]},
        "weights": {"enum": [str(found) for found in Weights]},
        "rounds": {**TEXT, "pattern": r"^[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*$", "examples": ["0-3,5"]},
        "stratum": {"enum": list(STRATA)},
        "subset": {**TEXT, "description": "The name of one of the project's subsets."},
        "as_of": {**TEXT, "format": "date-time", "description": "The set as it was known then."},
    }
    asked = [{"name": name, "in": "query", "schema": schema} for name, schema in texts.items()]
    which = {"name": "project_id", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 0}}
    return operation(summary, PEOPLE, answer, others="400 404 503", parameters=[which, *asked], **more)


_SET: Part = {kind: {"schema": {}} for kind in KINDS.values()}
_DOWNLOAD = _export("The weighted training set; Range and If-Range go on with a download that broke off", _SET)
_DOWNLOAD["responses"] |= {
    "206": {"description": "The part asked for by Range", "content": _SET},
    "304": {"description": "It is as If-None-Match has it"},
    "412": _other("412", pages=True),
    "416": _other("416", pages=True),
}
_LOGIN: Part = {
    "parameters": [{"name": "next", "in": "query", "schema": TEXT, "description": "A path here, to go on to."}]
}

_NUMBER: Part = {"type": "integer", "minimum": 1, "maximum": LARGEST_ID}
_FORM: Part = {"required": False, "content": {"application/x-www-form-urlencoded": {"schema": {"type": "object"}}}}


def _in_path(*names: str) -> Part:
    schemas = {"project_id": _NUMBER, "task": _NUMBER}
    return {
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": schemas.get(name, TEXT)} for name in names
        ]
    }


def _shown(summary: str, *more: str, answer: Part | None = None) -> Part:
    """Of a project."""
    shown = answer or as_text("text/html")
    return {"get": operation(summary, PEOPLE, shown, others="404 503", **_in_path("project_id", *more))}


def _done(summary: str) -> Part:
    """A form of a project. Whoever sends it is sent on to a page, or told what is wrong with it."""
    statuses = "302 400 404 413 503"
    return {"post": operation(summary, PEOPLE, None, body=_FORM, others=statuses, **_in_path("project_id"))}


_EVENTS = as_text("text/event-stream")
_PROJECT = "/projects/{project_id}"
_PAGES_OF_PROJECTS: Part = {
    "/events": {"get": operation("What changes on the page of all projects", PEOPLE, _EVENTS, others="503")},
    _PROJECT: _shown("What its loop does, and what is known"),
    f"{_PROJECT}/tasks": _shown("What annotators get next, and labels worth a second look"),
    f"{_PROJECT}/tasks/{{task}}/thumbnail": _shown("A small picture", "task", answer=as_text("image/png")),
    f"{_PROJECT}/jobs": _shown("Its jobs"),
    f"{_PROJECT}/jobs/{{job_id}}": _shown("What a job has logged", "job_id"),
    f"{_PROJECT}/events/{{page}}": _shown("What changes on a page of its", "page", answer=_EVENTS),
    f"{_PROJECT}/subsets": _shown("Its subsets") | _done("Asks for a subset"),
    f"{_PROJECT}/settings": _shown("How it goes on") | _done("Changes how it goes on"),
    f"{_PROJECT}/exports": _shown("What may be exported"),
    f"{_PROJECT}/train": _done("Trains with the labels that are there"),
    f"{_PROJECT}/reconcile": _done("Compares with Label Studio now"),
    f"{_PROJECT}/retry": _done("Tries failed jobs again now"),
}

PATHS: Part = {
    # what Label Studio calls
    "/health": {
        "get": {
            "summary": "Whether it is up",
            "security": ANYBODY,
            "responses": {
                "200": {"description": "Labels are taken in", "content": as_json(_ref("Health"))},
                "503": {"description": "They cannot be", "content": as_json(_ref("Health"))},
            },
        }
    },
    "/setup": {
        "post": operation(
            "Which model answers now",
            LABEL_STUDIO,
            as_json(object_of({"model_version": TEXT})),
            body={"required": False, "content": as_json({"description": "Not read: the secret tells the project."})},
            others="503",
        )
    },
    "/versions": {
        "get": operation(
            "The trained models, the newest first",
            LABEL_STUDIO,
            as_json(object_of({"versions": list_of(TEXT)})),
            others="503",
        )
    },
    "/predict": {
        "post": operation(
            "One prediction per task, in the tasks' order",
            LABEL_STUDIO,
            as_json(object_of({"results": list_of(_ref("Prediction"))})),
            body={"required": True, "content": as_json(_ref("PredictionRequest"))},
            others="400 413 415 503",
        )
    },
    "/webhook": {
        "post": operation(
            "Takes in what happened in Label Studio",
            LABEL_STUDIO,
            as_json(object_of({"status": TEXT}, {"job": TEXT})),
            body={"required": True, "content": as_json(_ref("Event"))},
            others="400 413 415 503",
        )
    },
    # what people ask for
    "/": {"get": operation("What each project is doing", PEOPLE, _PAGE, others="503")},
    "/login": {
        "get": operation("The page to sign in", ANYBODY, _PAGE, others="302 401 429", **_LOGIN),
        "post": operation(
            "Signs in",
            ANYBODY,
            None,
            body=_FORM,
            others="302 400 401 413 429",
            **_LOGIN,
        ),
    },
    "/logout": {"post": operation("Signs out", PEOPLE, None, others="400")},
    **_PAGES_OF_PROJECTS,
    "/projects/{project_id}/export": {"get": _DOWNLOAD},
    "/projects/{project_id}/export/manifest": {
        "get": _export("How the weights of that set came about", as_json(object_of({"row_digest": TEXT})))
    },
    "/api/projects": {
        "get": operation(
            "All projects and what each is doing",
            PEOPLE,
            as_json(object_of({"projects": list_of(_ref("ProjectStatus"))})),
            others="503",
        )
    },
    "/api/projects/{project_id}": {
        "get": operation(
            "What a project is doing, as `iwes status --json` tells it",
            PEOPLE,
            as_json(_ref("ProjectStatus")),
            others="404 503",
            parameters=[_PROJECT_ID],
        )
    },
    "/api/projects/{project_id}/estimates": {
        "get": operation(
            "What a project's labels say of what nobody has labelled",
            PEOPLE,
            as_json(_ref("Estimates")),
            others="400 404 503",
            parameters=[_PROJECT_ID, *_AIMS],
        )
    },
    "/metrics": {"get": operation("Figures for Prometheus", PEOPLE, as_text("text/plain"))},
    "/openapi.json": {"get": operation("This description", PEOPLE, as_json(object_of({"openapi": TEXT})))},
}
