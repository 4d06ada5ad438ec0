"""The pages of a project, and the streams that keep them up to date while they are open."""

from __future__ import annotations

from collections.abc import Callable

from flask import Blueprint, Response, current_app, render_template, request
from flask.typing import ResponseReturnValue
from redis.exceptions import RedisError
from werkzeug.exceptions import NotFound

from backend.dashboard import views, words
from backend.dashboard.forms import MISTAKES, ExportForm, SettingsForm, SubsetForm
from backend.dashboard.live import Live, Parts
from backend.exports.preview import preview
from backend.exports.wish import Wish
from backend.home import look
from backend.status_page import progress_done, progress_words
from jobs import job_log
from jobs.workplace import Workplace
from store import projects
from store import subsets as subset_store
from store.projects import UnknownProject
from store.tables import Project

pages = Blueprint("pages", __name__)
pages.add_app_template_filter(words.ago, "ago")
pages.add_app_template_filter(words.span, "span")
pages.add_app_template_filter(words.share, "share")
pages.add_app_template_filter(words.cell, "cell")
pages.add_app_template_filter(words.job_name, "job_name")
pages.add_app_template_filter(progress_words, "progress_words")
pages.add_app_template_filter(progress_done, "progress_done")


def place() -> Workplace:
    found: Workplace = current_app.extensions["workplace"]
    return found


def project_or_404(project_id: int) -> Project:
    with place().store.read() as session:
        try:
            return projects.by_id(session, project_id)
        except UnknownProject as error:
            raise NotFound(str(error)) from error


@pages.get("/")
def home() -> str:
    return render_template("home.html", parts=_live().parts(("home",), _home))


@pages.get("/events")
def home_events() -> Response:
    return _live().follow(("home",), _home)


@pages.get("/projects/<int:project_id>")
def overview(project_id: int) -> str:
    return _page("overview", project_id)


@pages.get("/projects/<int:project_id>/tasks")
def tasks(project_id: int) -> str:
    return _page("tasks", project_id)


@pages.get("/projects/<int:project_id>/jobs")
def jobs(project_id: int) -> str:
    return _page("jobs", project_id)


@pages.get("/projects/<int:project_id>/subsets")
def subsets(project_id: int) -> str:
    return _page("subsets", project_id, form=SubsetForm.blank(project_or_404(project_id)))


@pages.get("/projects/<int:project_id>/settings")
def settings(project_id: int) -> str:
    project = project_or_404(project_id)
    return render_template("project/settings.html", project=project, form=SettingsForm.of(project))


@pages.get("/projects/<int:project_id>/exports")
def export(project_id: int) -> ResponseReturnValue:
    """What is asked for stands in the address, so that it can be kept and sent to others."""
    project = project_or_404(project_id)
    with place().store.read() as session:
        form = ExportForm.asked(subset_store.all_of(session, project), request.args)
    try:
        wish = Wish.said(request.args.to_dict())
        shown = preview(place(), project_id, wish)
    except MISTAKES as error:
        form.blame(error)
        return render_template("project/export.html", project=project, form=form, shown=None), 400
    return render_template("project/export.html", project=project, form=form, shown=shown, wish=wish)


@pages.get("/projects/<int:project_id>/jobs/<job_id>")
def job(project_id: int, job_id: str) -> str:
    project = project_or_404(project_id)
    if not job_id.startswith(f"project-{project_id}-"):
        raise NotFound(f"{job_id} is no job of project {project_id}")
    try:
        lines = job_log.lines(place().redis, job_id)
    except (RedisError, OSError):
        lines = ["Redis does not answer, and it is where the lines are kept."]
    return render_template("project/job.html", project=project, job_id=job_id, lines=lines)


@pages.get("/projects/<int:project_id>/events/<page>")
def events(project_id: int, page: str) -> Response:
    project_or_404(project_id)
    if page not in _PARTS:
        raise NotFound(f"there is no page {page} to follow")
    return _live().follow((page, str(project_id)), lambda: _PARTS[page](project_id))


def render_subsets(project: Project, form: SubsetForm) -> str:
    """The page of subsets again, with what was typed and what is wrong with it."""
    return _page("subsets", project.id, form=form)


def _page(name: str, project_id: int, **more: object) -> str:
    project = project_or_404(project_id)
    parts = _live().parts((name, str(project_id)), lambda: _PARTS[name](project_id))
    return render_template(f"project/{name}.html", project=project, parts=parts, **more)


def _live() -> Live:
    live: Live = current_app.extensions["live"]
    return live


def _home() -> Parts:
    return {"projects": render_template("parts/projects.html", seen=look(place()))}


def _overview(project_id: int) -> Parts:
    seen = views.overview(place(), project_id)
    names = ("loop", "accuracy", "balance", "weights", "rounds")
    return {name: render_template(f"parts/{name}.html", seen=seen) for name in names}


def _tasks(project_id: int) -> Parts:
    project, seen = project_or_404(project_id), views.tasks(place(), project_id)
    names = ("queue", "second_look")
    return {name: render_template(f"parts/{name}.html", project=project, seen=seen) for name in names}


def _jobs(project_id: int) -> Parts:
    seen = views.jobs(place(), project_id)
    return {"jobs": render_template("parts/jobs.html", project_id=project_id, queue=seen.queue, jobs=seen.jobs)}


def _subsets(project_id: int) -> Parts:
    project, seen = project_or_404(project_id), views.subsets(place(), project_id)
    return {"subset-list": render_template("parts/subsets.html", project=project, **vars(seen))}


_PARTS: dict[str, Callable[[int], Parts]] = {
    "overview": _overview,
    "tasks": _tasks,
    "jobs": _jobs,
    "subsets": _subsets,
}
