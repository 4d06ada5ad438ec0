"""What the pages of a project show, and to whom."""

from __future__ import annotations

import logging

import pytest
from flask import Flask
from flask.testing import FlaskClient

from jobs import job_log
from jobs.workplace import Workplace
from store import subsets
from store.database import Store
from store.tables import Doubt, Project, RoundState
from tests.conftest import a_label, make_project, put_label, task_of
from tests.dashboard.conftest import red_picture, set_image, set_state
from tests.security.conftest import BROWSER

PAGES = ("", "/tasks", "/jobs", "/subsets", "/settings", "/exports")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_its_tab_and_no_inline_code(person: FlaskClient, project: Project, page: str) -> None:
    answer = person.get(f"/projects/{project.id}{page}", headers=BROWSER)
    assert answer.status_code == 200
    assert answer.text.count('aria-current="page"') == 1
    assert " style=" not in answer.text
    assert " onclick=" not in answer.text
    assert "<script>" not in answer.text


@pytest.mark.parametrize("page", [*PAGES, "/events/overview", "/tasks/1/thumbnail"])
def test_nobody_sees_a_page_without_signing_in(client: FlaskClient, project: Project, page: str) -> None:
    assert client.get(f"/projects/{project.id}{page}").status_code == 401


@pytest.mark.parametrize("page", [*PAGES, "/events/overview", "/jobs/project-9-reconcile", "/tasks/1/thumbnail"])
def test_a_project_that_is_not_there_is_told_so(person: FlaskClient, page: str) -> None:
    answer = person.get(f"/projects/9{page}", headers=BROWSER)
    assert answer.status_code == 404
    assert "there is no project 9" in answer.text


def test_the_overview_tells_how_far_the_round_is_and_how_good_the_model_is(
    person: FlaskClient, project: Project
) -> None:
    page = person.get(f"/projects/{project.id}", headers=BROWSER).text
    assert "Round 1: collecting labels" in page
    assert "3 of 4" in page
    assert "iwes-0" in page
    assert 'aria-label="Accuracy on unlabelled tasks over 1 models; the last, iwes-0: 67%' in page
    assert 'aria-label="Weights of 3 labels from 1 to 2; 100% are at the cap"' in page


def test_the_overview_tells_all_that_the_labels_say_of_the_pool(
    person: FlaskClient, store: Store, project: Project
) -> None:
    """Advice, what it rests on, what is missing, each class with its interval: as the API tells them."""
    set_state(store, project, 1, RoundState.CLOSED)
    page = person.get(f"/projects/{project.id}", headers=BROWSER).text
    told = person.get(f"/api/projects/{project.id}/estimates").json
    assert f"<b>Go on</b> {told['advice']['reason']}" in page
    assert f"<dd>3, worth {told['judged']['worth']:.0f} drawn by lot</dd>" in page
    assert f"within ±2.0%</dt><dd>{told['labels_needed']:,}</dd>" in page
    assert "<dd>1, of them skipped 0</dd>" in page
    for share in told["class_balance"]:
        assert f'<span class="bar-name">{share["class"]}</span>' in page
        assert f"{share['value']:.0%} ({share['low']:.0%}–{share['high']:.0%})" in page
    for recall in told["recall"]:
        assert f'<td colspan="2">{recall["reason"]}</td>' in page


def test_next_tasks_are_shown_in_order_each_with_the_reason_it_was_chosen(
    person: FlaskClient, store: Store, project: Project
) -> None:
    page = person.get(f"/projects/{project.id}/tasks", headers=BROWSER).text
    places = [page.index(f"/tasks/{task}/thumbnail") for task in (14, 15, 16)]
    assert places == sorted(places)
    assert "/tasks/13/thumbnail" not in page, "it is labelled"
    assert "1 of the batch are left, and 2 in reserve" in page
    assert "the model hesitates" in page
    assert "0.500" in page


def test_labels_worth_a_second_look_are_shown(person: FlaskClient, store: Store, project: Project) -> None:
    put_label(store, project, 20, a_label(90, "dog", imported=True))
    with store.write() as session:
        stored = session.get_one(Project, project.id)
        subset = subsets.ask(session, stored, name="dis", rule="dis", size=0, auto=True)
        task = task_of(store, project, 20)
        doubt = Doubt(task_id=task.id, class_name="dog", suggested="cat", improbability=0.97, disagreement=0.1)
        subsets.replace_doubts(session, subset, [doubt])
    page = person.get(f"/projects/{project.id}/tasks", headers=BROWSER).text
    assert "/tasks/20/thumbnail" in page
    assert "0.970" in page


def test_a_title_and_a_class_that_are_markup_are_shown_as_they_are(person: FlaskClient, store: Store) -> None:
    bad = "<img src=x onerror=alert(1)>"
    project = make_project(store, tasks=3, title=bad, classes=[bad, "dog"])
    put_label(store, project, 1, a_label(1, bad))
    for page in PAGES:
        text = person.get(f"/projects/{project.id}{page}", headers=BROWSER).text
        assert bad not in text
        assert "&lt;img src=x" in text


def test_a_small_picture_is_square_and_kept_by_the_browser(person: FlaskClient, store: Store, project: Project) -> None:
    set_image(store, project, 14, red_picture())
    answer = person.get(f"/projects/{project.id}/tasks/14/thumbnail")
    assert (answer.status_code, answer.mimetype) == (200, "image/png")
    assert answer.headers["Cache-Control"].startswith("private")
    again = person.get(f"/projects/{project.id}/tasks/14/thumbnail", headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status_code == 304


def test_a_picture_from_where_nothing_may_be_fetched_is_not_fetched(
    person: FlaskClient, store: Store, project: Project
) -> None:
    set_image(store, project, 14, "http://169.254.169.254/latest/meta-data")
    answer = person.get(f"/projects/{project.id}/tasks/14/thumbnail")
    assert answer.status_code == 404
    assert person.get(f"/projects/{project.id}/tasks/999/thumbnail").status_code == 404


def test_the_log_of_a_job_is_shown_and_of_no_other_projects_job(
    app: Flask, person: FlaskClient, busy: Workplace, project: Project
) -> None:
    app.extensions["workplace"].__dict__["redis"] = busy.redis
    job = f"project-{project.id}-round-1-train"
    with job_log.kept(busy.redis, job):
        logging.getLogger("jobs.train").warning("epoch 3 <b>")
    page = person.get(f"/projects/{project.id}/jobs/{job}", headers=BROWSER).text
    assert "epoch 3 &lt;b&gt;" in page
    assert "Train, round 1" in page
    assert person.get(f"/projects/{project.id}/jobs/project-77-round-1-train").status_code == 404


def test_a_stream_begins_with_all_parts_of_the_page(person: FlaskClient, project: Project) -> None:
    answer = person.get(f"/projects/{project.id}/events/overview")
    assert answer.mimetype == "text/event-stream"
    chunks = iter(answer.response)
    assert next(chunks).startswith(b"retry:")
    first = next(chunks).decode()
    answer.close()
    assert all(f'"{part}":' in first for part in ("loop", "accuracy", "balance", "weights", "rounds"))
    assert person.get(f"/projects/{project.id}/events/nothing").status_code == 404


def test_images_outside_of_label_studio_have_pages_without_ways_into_it(
    person: FlaskClient, store: Store, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("photos")
    project = make_project(store, tasks=3, studio_url=f"folder:{folder}", title="photos", connected=False)
    for page in PAGES:
        text = person.get(f"/projects/{project.id}{page}", headers=BROWSER).text
        assert "Open in Label Studio" not in text
        assert "folder:" not in text or page == "/exports"
    assert "iwes select --images" in person.get(f"/projects/{project.id}/subsets", headers=BROWSER).text


@pytest.mark.parametrize(
    "path", [f"/projects/{2**70}", f"/projects/1/tasks/{2**70}/thumbnail", f"/api/projects/{2**40}"]
)
def test_a_number_no_database_can_hold_is_nothing_there(person: FlaskClient, project: Project, path: str) -> None:
    assert person.get(path).status_code == 404
