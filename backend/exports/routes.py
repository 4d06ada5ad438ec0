"""The weighted training set over HTTP: a download that may break off and go on, and its manifest."""

from __future__ import annotations

from itertools import chain
from typing import cast

from flask import Blueprint, Response, current_app, request, send_file
from werkzeug.http import quote_etag

from backend.exports.errors import NotNow
from backend.exports.kept import Download, Kept
from backend.exports.wish import Format, Wish

exports = Blueprint("exports", __name__)

KINDS = {
    Format.JSONL: "application/x-ndjson",
    Format.CSV: "text/csv",
    Format.PARQUET: "application/vnd.apache.parquet",
    Format.LABEL_STUDIO: "application/json",
    Format.IMAGEFOLDER: "application/zip",
    Format.HUGGINGFACE: "application/zip",
}


@exports.get("/projects/<int:project_id>/export")
def download(project_id: int) -> Response:
    wish, kept = _wish(), _kept()
    _take_place(kept)
    try:
        found = kept.open(project_id, wish, request.if_range.etag)
        growing = not found.is_whole and request.method == "GET" and "Range" not in request.headers
        answer = _growing(found, wish) if growing else _whole(found, wish)
    except BaseException:
        kept.places.release()
        raise
    answer.call_on_close(kept.places.release)
    return answer


@exports.get("/projects/<int:project_id>/export/manifest")
def manifest(project_id: int) -> Response:
    """Of the same download, which is written for it where it is not kept already."""
    wish, kept = _wish(), _kept()
    _take_place(kept)
    try:
        return Response(kept.open(project_id, wish).manifest(), mimetype="application/json")
    finally:
        kept.places.release()


def _take_place(kept: Kept) -> None:
    """Raises NotNow."""
    if not kept.places.acquire(blocking=False):
        raise NotNow("too many downloads are under way; try again later")


def _wish() -> Wish:
    return Wish.said(request.args.to_dict())


def _kept() -> Kept:
    return cast(Kept, current_app.extensions["exports"])


def _growing(found: Download, wish: Wish) -> Response:
    """Sent while it is written, so that the first byte comes soon; how long it is, nobody knows yet."""
    parts = found.growing()
    first = next(parts, b"")  # a failure before it is answered as one; after it, the answer breaks off
    answer = Response(chain([first], parts), mimetype=KINDS[wish.format])
    answer.headers["ETag"] = quote_etag(found.name)
    answer.headers["Accept-Ranges"] = "bytes"
    answer.headers.set("Content-Disposition", "attachment", filename=found.file_name)
    return answer


def _whole(found: Download, wish: Wish) -> Response:
    return send_file(
        found.wait(),
        mimetype=KINDS[wish.format],
        as_attachment=True,
        download_name=found.file_name,
        conditional=True,
        etag=found.name,
    )
