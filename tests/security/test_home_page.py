"""The page people come to: each project with what it waits for, and what is wrong."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from flask import Flask, render_template
from flask.testing import FlaskClient

from backend.home import Seen, look
from jobs.status import JobStatus, QueueStatus
from jobs.workplace import Workplace
from store import rounds
from store.database import Store
from store.tables import Project, RoundState, now
from tests.conftest import a_label, make_project, put_label
from tests.security.conftest import BROWSER


def test_an_open_round_shows_how_many_labels_are_in(
    place: Workplace, store: Store, project: Project, person: FlaskClient
) -> None:
    put_label(store, project, 1, a_label(1, "cat"))
    (card,) = look(place).cards
    assert (card.doing, card.labels, card.wanted) == ("Round 0: collecting labels", 1, 4)
    assert card.facts[:2] == [("Tasks", "4"), ("Without a label", "3")]
    page = person.get("/", headers=BROWSER).text
    assert '<progress max="4" value="1"' in page
    assert 'href="http://studio.test/projects/1/data"' in page
    assert "Redis does not answer" in page


def test_every_state_of_a_project_has_its_words(place: Workplace, store: Store, project: Project) -> None:
    expected = {
        RoundState.DRAWN: "Round 0: its tasks are being published",
        RoundState.CLOSED: "Round 0: a model trains on its labels",
        RoundState.TRAINED: "The next tasks are being drawn",
    }
    for state, words in expected.items():
        with store.write() as session:
            rounds.by_number(session, project, 0).state = state
        assert look(place).cards[0].doing == words
    make_project(store, studio_id=2, secret="2")
    make_project(store, studio_id=3, secret="3", connected=False)
    make_project(store, studio_id=4, secret="4", studio_url="folder:/images", title="photos", connected=False)
    others = look(place).cards[1:]
    assert [card.doing for card in others] == [
        "Nothing to ask annotators for yet",
        "Disconnected; labels and weights are kept",
        "A data set outside of Label Studio",
    ]
    assert others[-1].address is None


def test_when_it_was_last_compared_is_told_in_minutes(place: Workplace, store: Store) -> None:
    make_project(store, reconciled_at=now() - timedelta(minutes=3, seconds=5))
    make_project(store, studio_id=2, secret="2")
    facts = [dict(card.facts)["Last compared"] for card in look(place).cards]
    assert facts == ["3 min ago", "never"]


def test_jobs_in_trouble_are_shown_with_their_reason(app: Flask) -> None:
    failed = JobStatus("project-1-round-0-train", "failed", "out of memory <b>", None)
    queue = QueueStatus(reachable=True, workers=1, waiting={"studio": 1, "gpu": 1}, jobs=[failed])
    with app.test_request_context("/"):
        page = render_template("parts/projects.html", seen=Seen([], queue, [failed]))
    assert "1 worker alive" in page
    assert "2 jobs waiting" in page
    assert "out of memory &lt;b&gt;" in page
    assert "No project yet" in page


def test_pages_and_styles_are_part_of_the_package() -> None:
    root = Path(__file__).parents[2]
    assert "backend = templates/*.html, templates/*/*.html, static/*" in (root / "setup.cfg").read_text()
    assert {path.suffix for path in (root / "backend" / "static").iterdir()} == {".css", ".js", ".svg"}
