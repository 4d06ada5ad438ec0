"""What an admin may do on a project's pages. Each ends on a page that says what came of it."""

from __future__ import annotations

from flask import Blueprint, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from redis.exceptions import RedisError

from backend import selection
from backend.dashboard.forms import MISTAKES, SettingsForm, SubsetForm
from backend.dashboard.pages import place, project_or_404, render_subsets
from jobs import intake, queues
from jobs.change import change, consider
from jobs.loop import advance, reconcile_work

actions = Blueprint("actions", __name__)


@actions.post("/projects/<int:project_id>/settings")
def set_up(project_id: int) -> ResponseReturnValue:
    """Makes the changes; or, where that button was pressed, only says what they would do."""
    project = project_or_404(project_id)
    form = SettingsForm.typed_in(request.form)
    wishes = form.values()
    if not form.problems:
        try:
            if "consider" in request.form:
                would = [_sentence(each.would_be, each.effect) for each in consider(place(), project_id, wishes)]
                told = would or ["Nothing would be changed: all is as it was."]
                return render_template("project/settings.html", project=project, form=form, told=told)
            made = change(place(), project_id, wishes)
        except MISTAKES as error:
            form.blame(error)
        else:
            for each in made:
                flash(_sentence(each.said, each.effect))
            if not made:
                flash("Nothing was changed: all is as it was.")
            return redirect(url_for("pages.settings", project_id=project_id))
    return render_template("project/settings.html", project=project, form=form), 400


def _sentence(said: str, effect: str) -> str:
    return f"{said[:1].upper()}{said[1:]}: {effect}."


@actions.post("/projects/<int:project_id>/subsets")
def ask_for_subset(project_id: int) -> ResponseReturnValue:
    project = project_or_404(project_id)
    form = SubsetForm.typed_in(project, request.form)
    wishes = form.values()
    for name in ("size", "name", "rule"):
        if name not in wishes:
            form.problems.setdefault(name, "is needed")
    if not form.problems:
        try:
            subset = selection.ask(place(), project_id, **wishes)
        except MISTAKES as error:
            form.blame(error)
        else:
            flash(f"Subset {subset.name} is being selected; nothing more has to be done.")
            return redirect(url_for("pages.subsets", project_id=project_id))
    return render_subsets(project, form), 400


@actions.post("/projects/<int:project_id>/train")
def train(project_id: int) -> ResponseReturnValue:
    """With the labels that are there, however few of the round's are missing."""
    project_or_404(project_id)
    jobs = intake.start_training(place(), project_id)
    flash("Training is on its way." if jobs else "There are no new labels to train on.")
    return redirect(url_for("pages.overview", project_id=project_id))


@actions.post("/projects/<int:project_id>/reconcile")
def compare(project_id: int) -> ResponseReturnValue:
    project = project_or_404(project_id)
    try:
        queues.ensure(place().redis, reconcile_work(project), even_if_failed=True)
        flash("Store and Label Studio are being compared; what is repaired stands in the job’s log.")
    except (RedisError, OSError):
        flash("Redis does not answer: try again when it is back.")
    return redirect(url_for("pages.jobs", project_id=project_id))


@actions.post("/projects/<int:project_id>/retry")
def retry(project_id: int) -> ResponseReturnValue:
    project_or_404(project_id)
    jobs = advance(place(), project_id, even_if_failed=True)
    flash("Tried again: " + ", ".join(jobs) if jobs else "Nothing is due.")
    return redirect(url_for("pages.jobs", project_id=project_id))
