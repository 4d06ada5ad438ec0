"""Headers that tell browsers how little our answers may do."""

from __future__ import annotations

from flask import Flask, Response, request

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
HSTS = "max-age=31536000"


def secure_headers(app: Flask, *, encrypted: bool) -> None:
    """On every answer, whoever made it."""
    headers = HEADERS | ({"Strict-Transport-Security": HSTS} if encrypted else {})

    def add(response: Response) -> Response:
        response.headers.update(headers)
        if request.endpoint != "static":
            response.headers.setdefault("Cache-Control", "no-store")
        return response

    app.after_request(add)
