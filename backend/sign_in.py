"""The way in and out for people."""

from __future__ import annotations

import re

from flask import Blueprint, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import TooManyRequests

from backend.people import enter, is_signed_in, leave, people

sign_in = Blueprint("sign_in", __name__)

_PATH_HERE = re.compile(r"/(?![/\\])[!-\[\]-~]*")
"""A path of ours: browsers take '//host' and '/\\host' for another site, and pass over control characters."""


@sign_in.route("/login", methods=["GET", "POST"])
def login() -> ResponseReturnValue:
    asked = request.values.get("next", "")
    target = asked if _PATH_HERE.fullmatch(asked) else url_for("pages.home")
    if request.method == "GET":
        return redirect(target) if is_signed_in() else _form(target)
    try:
        right = people().is_token(request.form.get("token", "").strip())
    except TooManyRequests as error:
        return _form(target, str(error.description)), 429, {"Retry-After": str(error.retry_after)}
    if not right:
        return _form(target, "That is not the token in force."), 401
    enter()
    return redirect(target)


@sign_in.post("/logout")
def logout() -> ResponseReturnValue:
    leave()
    return redirect(url_for("sign_in.login"))


def _form(target: str, problem: str = "") -> str:
    return render_template("login.html", target=target, problem=problem)
