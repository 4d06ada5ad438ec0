"""Small pictures of tasks: fetched as training fetches them, within the same limits, and kept on the same shelf."""

from __future__ import annotations

import io

import numpy as np
from flask import Blueprint, Response, current_app, request
from PIL import Image
from werkzeug.exceptions import NotFound, ServiceUnavailable

from jobs.images import ImageSource
from jobs.workplace import Workplace
from store import pool, projects
from store.projects import UnknownProject
from studio.messages import LARGEST_ID

SIZE = 128
"""Two dots for each of the page's: screens show them so."""
MOST_BYTES = 256 * 2**20
KEPT_SECONDS = 3600

thumbnails = Blueprint("thumbnails", __name__)


@thumbnails.get("/projects/<int:project_id>/tasks/<int:task>/thumbnail")
def thumbnail(project_id: int, task: int) -> Response:
    place: Workplace = current_app.extensions["workplace"]
    with place.store.read() as session:
        try:
            project = projects.by_id(session, project_id)
        except UnknownProject as error:
            raise NotFound(str(error)) from error
        found = pool.by_studio_id(session, project, [task]).get(task) if task <= LARGEST_ID else None
    if found is None:
        raise NotFound(f"project {project_id} has no task {task}")
    loaded = ImageSource.of(place, project, SIZE, most_bytes=MOST_BYTES).load([found.data])
    if loaded.away:
        raise ServiceUnavailable(loaded.away[0])
    if loaded.bad:
        raise NotFound(loaded.bad[0])
    answer = Response(_png(loaded.images[:][0]), mimetype="image/png")
    answer.headers["Cache-Control"] = f"private, max-age={KEPT_SECONDS}"
    answer.set_etag(loaded.keys[0].hex())
    answer.make_conditional(request)
    return answer


def _png(pixels: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> bytes:
    content = io.BytesIO()
    Image.fromarray(pixels.transpose(1, 2, 0)).save(content, "PNG", compress_level=1)
    return content.getvalue()
