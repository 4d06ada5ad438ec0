"""/predict with a trained model and its twin: a picture that cannot be had gets an empty prediction, never a fault."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from jobs import versions
from jobs.settings import Settings
from models import checkpoint
from models.card import Origin
from models.classifier import Classifier
from models.device import choose
from models.learner import Examples
from models.network_learner import FullLearner
from models.recipe import DEFAULT
from store.database import Store
from store.tables import Model, Subset
from tests.backend.door import Door
from tests.backend.mutations import CANARY, JUNK, as_sent
from tests.conftest import a_label, put_label
from tests.files import Files, picture

pytestmark = pytest.mark.slow

HERE = "/data/good.png"
REFUSED_AT_ONCE = {"NaN", "minus infinity", "sixty levels"}
ADDRESSES = [
    *[
        "",
        " ",
        "/",
        "//",
        "///",
        "/data",
        "/data/",
        "/data/../secret",
        "/data/\0.png",
        "/data/%00",
        "/data/%zz",
        "/data/[",
    ],
    *["//[", "//]", "{}//[", "{}//[x]/a", "{}//℀", "{}/data/a b", "{}@evil.test/data/x", "{}:99999/data/x", "{}/api/x"],
    *["http://[", "http://[::1", "http://℀/x", "http://-/x", "http://a:b:c/", "http://:80/", "https://" + "a" * 300],
    *["file:///etc/passwd", "FILE:/etc/passwd", "ftp://x/y", "s3://", "s3://a", "javascript:1", "data:", "data:,x"],
    *["data:image/png;base64,", "data:image/png;base64,====", "data:image/png;base64,AAAA", "data:image/png;base64,ÿ"],
    *["\\\\host\\x.png", "x" * 10_000, "\ud800", "\u202e/data/x.png", "{}", "%2e%2e/%2e%2e/x", "/data/?d=../../x"],
]


@pytest.fixture
def files() -> Iterator[Files]:
    with Files() as held:
        held.held[HERE] = picture()
        held.held["/data/broken.png"] = held.held[HERE][:40]
        held.held["/data/empty.png"] = b""
        yield held


@pytest.fixture
def door(client: FlaskClient, store: Store, settings: Settings, files: Files) -> Iterator[Door]:
    """Its Label Studio serves three pictures, and task 1 has a label the two models can disagree about."""
    watched = Door(client.application, store, studio_url=files.url)
    put_label(store, watched.project, 1, a_label(1, "cat"))
    _train(store, settings, watched)
    watched.look_again()
    yield watched
    watched.close()


def _train(store: Store, settings: Settings, door: Door) -> None:
    learner = FullLearner("small-cnn", DEFAULT, choose("cpu"))
    images = np.random.default_rng(1).integers(0, 255, (6, 3, learner.input_size, learner.input_size), np.uint8)
    seen = Examples(images, np.arange(6) % 3, np.ones(6, np.float32), classes=3)
    asked = {"seed_size": 2, "k": 2, "cap": 2.0, "floor": 0.05, "sharpness": 1.0}
    with store.write() as session:
        subset = Subset(project_id=door.project.id, name="dis", rule="dis", size=2, **asked)
        session.add(subset)
        session.flush()
        for seed, twin in enumerate((False, True)):
            version = versions.version(0, subset, twin=twin)
            trained = Classifier(learner, learner.fit(seen, seed=seed), classes=door.project.classes, version=version)
            folder = versions.folder(settings, door.project, version)
            checkpoint.save(folder, trained, Origin("small-cnn", "full", seed, 0, "", {}))
            known = {"project_id": door.project.id, "subset_id": subset.id, "round_number": 0}
            session.add(Model(**known, twin=twin, version=version, examples=6, metrics={}))


def asked(*data: Any, ids: Any = None) -> bytes:
    return as_sent({"tasks": [{"id": ids, "data": one} for one in data]})


def test_every_task_gets_its_answer_and_only_a_picture_gets_a_class(door: Door, files: Files) -> None:
    bad = [address.replace("{}", files.url) for address in ADDRESSES]
    junk = [{"image": one} for one in (*bad, *(JUNK[kind] for kind in JUNK.keys() - REFUSED_AT_ONCE))]
    answer = door.send("/predict", asked({"image": HERE}, *junk, {}, {CANARY: HERE}, {"image": HERE}))
    assert answer.status_code == 200, answer.text
    results = answer.json["results"]
    assert len(results) == len(junk) + 4
    assert [bool(one["result"]) for one in results] == [True, *[False] * (len(junk) + 2), True]
    assert {one["model_version"] for one in results} == {"iwes-dis-0"}
    assert {asked for asked in files.asked if not asked.startswith("/data/")} == set()


def test_a_task_with_a_label_is_scored_by_how_far_the_models_are_apart(door: Door) -> None:
    (one,) = door.send("/predict", asked({"image": HERE}, ids=1)).json["results"]
    assert one["score"] != one["result"][0]["score"]


def test_an_id_that_is_junk_is_refused(door: Door) -> None:
    for junk in (0, -1, 1.5, "1", True, [], {}, 2**63, 10**400):
        answer = door.send("/predict", asked({"image": HERE}, ids=junk))
        assert (answer.status_code, answer.json["error"].split()[0]) == (400, "tasks[].id"), junk


def test_any_text_for_an_address_is_answered(door: Door, files: Files) -> None:
    begin = st.sampled_from(
        ["", "/", "/data/", "//", "http://", "https://", "s3://", "data:image/png;base64,", "file:"]
    )
    signs = st.text(max_size=30) | st.text("[]@:/\\%.?#&=;$ \0\t1é℀", max_size=20)

    @examples(max_examples=300, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.builds(str.__add__, begin, signs), max_size=4))
    def send(addresses: list[str]) -> None:
        new = f"/data/{len(files.held)}.png"  # where not one picture of several is served, Label Studio counts as away
        files.held[new] = picture()
        answer = door.send("/predict", asked({"image": new}, *[{"image": address} for address in addresses]))
        assert [bool(one["result"]) for one in answer.json["results"]] == [True, *[False] * len(addresses)]

    send()


def test_pictures_that_label_studio_does_not_have_are_no_fault_of_ours(door: Door, files: Files) -> None:
    answer = door.send("/predict", asked({"image": HERE}, {"image": "/data/broken.png"}, {"image": "/data/empty.png"}))
    assert [bool(one["result"]) for one in answer.json["results"]] == [True, False, False]
    one = door.send("/predict", asked({"image": "/data/gone.png"}))
    assert (one.status_code, one.json["results"][0]["result"]) == (200, [])
