"""What an admin does on the pages: it takes effect, or is refused with a word beside the field; never half of it."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from store import rounds, subsets
from store.database import Store
from store.tables import Project, RoundState
from tests.conftest import a_label, put_label
from tests.security.conftest import BROWSER, csrf_token

SETTINGS = {
    "k": "4",
    "cap": "2",
    "floor": "0.05",
    "reserve": "0.5",
    "sharpness": "1",
    "mode": "auto",
    "rule": "ent",
    "network": "small-cnn",
    "way": "auto",
}


def send(person: FlaskClient, path: str, **form: str) -> Any:
    page = path if path.endswith(("settings", "subsets")) else "/"
    token = csrf_token(person, page)
    return person.post(path, data={**form, "csrf_token": token}, headers=BROWSER, follow_redirects=True)


def stored(store: Store, project: Project) -> Project:
    with store.read() as session:
        return session.get_one(Project, project.id)


def test_a_new_k_counts_from_the_next_round_on_and_the_page_says_so(
    person: FlaskClient, store: Store, project: Project
) -> None:
    answer = send(person, f"/projects/{project.id}/settings", **(SETTINGS | {"k": "9"}))
    assert "K is 9 now, and was 4: from round 2 on; round 1 still waits for its 4 labels." in answer.text
    assert stored(store, project).k == 9
    with store.read() as session:
        assert rounds.by_number(session, project, 1).wanted == 4


def test_another_rule_is_chosen(person: FlaskClient, store: Store, project: Project) -> None:
    page = f"/projects/{project.id}/settings"
    answer = send(person, page, **(SETTINGS | {"rule": "margin"}))
    assert "Rule is margin now, and was ent: from the next draw on" in answer.text
    assert stored(store, project).rule == "margin"
    assert '<option value="margin" selected>' in person.get(page, headers=BROWSER).text


def test_what_a_change_would_do_is_told_before_it_is_made(person: FlaskClient, store: Store, project: Project) -> None:
    path = f"/projects/{project.id}/settings"
    answer = send(person, path, **(SETTINGS | {"k": "9", "floor": "0.1", "consider": "on"}))
    assert "K would be 9, and is 4: from round 2 on; round 1 still waits for its 4 labels." in answer.text
    assert "Floor would be 0.1, and is 0.05: from the next draw on" in answer.text
    assert 'value="9"' in answer.text, "what was typed is still there"
    assert (stored(store, project).k, stored(store, project).floor) == (4, 0.05)
    assert "Nothing would be changed" in send(person, path, **(SETTINGS | {"consider": "on"})).text
    assert send(person, path, **(SETTINGS | {"k": "0", "consider": "on"})).status_code == 400


@pytest.mark.parametrize(
    ("field", "typed", "said"),
    [
        ("k", "0", "Labels per round must be from 1 to 1,000,000."),
        ("k", "many", "Labels per round is &#39;many&#39;: a whole number is expected here."),
        ("cap", "0.5", "Largest weight must be at least 1"),
        ("cap", "inf", "Largest weight must be at least 1"),
        ("floor", "1", "Smallest probability must be between 0 and 1, both excluded."),
        ("floor", "nan", "Smallest probability must be between 0 and 1, both excluded."),
        ("reserve", "-1", "Reserve must be between 0 and 10."),
        ("sharpness", "0", "Sharpness must be above 0"),
        ("mode", "best", "Drawn from must be one of auto, ent, dis, loss."),
        ("rule", "best", "Rule must be one of ent, margin."),
        ("network", "resnet81", "did you mean &#39;resnet18&#39;?"),
        ("way", "sideways", "train must be one of auto, full, head"),
    ],
)
def test_a_bad_value_is_named_beside_its_field_and_nothing_is_changed(
    person: FlaskClient, store: Store, project: Project, field: str, typed: str, said: str
) -> None:
    answer = send(person, f"/projects/{project.id}/settings", **(SETTINGS | {"k": "9", field: typed}))
    assert answer.status_code == 400
    assert said in answer.text
    assert f'value="{typed}"' in answer.text or field in ("mode", "rule", "way"), "what was typed is still there"
    assert stored(store, project).k == 4


def test_another_network_is_trained_next_and_decides_anew_how(
    person: FlaskClient, store: Store, project: Project
) -> None:
    with store.write() as session:
        session.get_one(Project, project.id).training = {"way": "full", "pretrained": False}
    send(person, f"/projects/{project.id}/settings", **(SETTINGS | {"network": "efficientnet-lite0", "way": "full"}))
    changed = stored(store, project)
    assert changed.network == "efficientnet-lite0"
    assert changed.training["pretrained"] is None


def test_saving_what_is_there_changes_nothing(person: FlaskClient, project: Project) -> None:
    assert "Nothing was changed" in send(person, f"/projects/{project.id}/settings", **SETTINGS).text


def test_a_subset_is_asked_for(person: FlaskClient, store: Store, project: Project) -> None:
    for task in range(20, 30):
        put_label(store, project, task, a_label(100 + task, "dog", imported=True))
    path = f"/projects/{project.id}/subsets"
    answer = send(person, path, size="6", name="half", rule="loss", k="3", cap="", floor="")
    assert "Subset half is being selected" in answer.text
    with store.read() as session:
        subset = subsets.named(session, project, "half")
    assert (subset.size, subset.rule, subset.k, subset.cap) == (6, "loss", 3, 2.0)


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"size": "", "name": "half", "rule": "dis"}, "Tasks is needed."),
        ({"size": "6", "name": "Half!", "rule": "dis"}, "give small letters"),
        ({"size": "600", "name": "half", "rule": "dis"}, "no task of this project came with a label"),
    ],
)
def test_a_subset_that_cannot_be_is_refused_with_the_reason(
    person: FlaskClient, store: Store, project: Project, form: dict[str, str], said: str
) -> None:
    answer = send(person, f"/projects/{project.id}/subsets", **form)
    assert answer.status_code == 400
    assert said in answer.text
    with store.read() as session:
        assert not subsets.all_of(session, project)


def test_training_can_be_begun_with_fewer_labels(person: FlaskClient, store: Store, project: Project) -> None:
    assert "Training is on its way." in send(person, f"/projects/{project.id}/train").text
    with store.read() as session:
        assert rounds.by_number(session, project, 1).state == RoundState.CLOSED


def test_a_redis_that_is_away_costs_no_answer(person: FlaskClient, project: Project) -> None:
    assert "Redis does not answer" in send(person, f"/projects/{project.id}/reconcile").text
    assert send(person, f"/projects/{project.id}/retry").status_code == 200


@pytest.mark.parametrize("action", ["settings", "subsets", "train", "reconcile", "retry"])
def test_a_form_from_elsewhere_changes_nothing(
    person: FlaskClient, store: Store, project: Project, action: str
) -> None:
    assert person.post(f"/projects/{project.id}/{action}", data={"k": "9"}, headers=BROWSER).status_code == 400
    assert stored(store, project).k == 4
    with store.read() as session:
        assert rounds.by_number(session, project, 1).state == RoundState.OPEN
