"""While labels are awaited, the images of the next draw are fetched, so that it does not have to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from jobs import fetch, queues
from jobs.draw import draw_round
from jobs.fetch import fetch_ahead
from jobs.loop import prepare
from jobs.publish import publish_round
from jobs.train import train_round
from jobs.workplace import Workplace
from store import pool, projects, rounds
from store.tables import Mode, Project, RoundState
from tests.conftest import a_label, add_round, make_project, put_label
from tests.files import Files, picture

pytestmark = pytest.mark.slow

COUNT = 60
SEED = list(range(1, 9))


@pytest.fixture
def files() -> Iterator[Files]:
    with Files() as files:
        files.held = {f"/data/{n}.png": picture(28, shade=40 if n % 2 else 220, noise=n) for n in range(1, COUNT + 1)}
        yield files


def a_project(place: Workplace, files: Files, **changes: object) -> Project:
    """The seed round is open, and nobody has labelled yet."""
    changes = {"classes": ["dark", "light"], "training": {"way": "head"}, **changes}
    project = make_project(place.store, tasks=COUNT, studio_url=files.url, **changes)
    add_round(place.store, project, 0, SEED, wanted=len(SEED))
    return project


def label_all(place: Workplace, project: Project, numbers: list[int] = SEED) -> None:
    for n in numbers:
        put_label(place.store, project, n, a_label(n, "dark" if n % 2 else "light"))


def asked_by_the_draw(place: Workplace, project: Project, files: Files) -> list[str]:
    """What is fetched from Label Studio when round 1 is drawn, after a training."""
    label_all(place, project)
    train_round(place, project.id, 0)
    before = len(files.asked)
    draw_round(place, project.id, 1)
    with place.store.read() as session:
        assert rounds.by_number(session, project, 1).batch_size == project.k
    return files.asked[before:]


@pytest.mark.parametrize("way", ["head", "full"])
def test_a_draw_finds_its_images_fetched(busy: Workplace, files: Files, way: str) -> None:
    project = a_project(busy, files, training={"way": way})
    assert fetch_ahead(busy, project.id, 1) == COUNT - len(SEED)
    assert len(files.asked) == len(set(files.asked)) == COUNT - len(SEED), "each once, and none that is on screen"
    assert asked_by_the_draw(busy, project, files) == []


def test_without_it_the_draw_fetches_them_itself(busy: Workplace, files: Files) -> None:
    project = a_project(busy, files)
    assert asked_by_the_draw(busy, project, files)


def test_what_the_draw_asks_for_first_is_fetched_first(
    busy: Workplace, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.draw.SCORING_BATCH", 8)
    project = a_project(busy, files, k=2, reserve=0.0, floor=0.9)
    assert fetch_ahead(busy, project.id, 1) == 3, "with this floor a draw of two hardly looks at more"
    first = set(files.asked)
    fetched = set(asked_by_the_draw(busy, project, files))
    assert len(first | fetched) == 8, "the draw looked at eight, these three among them"
    assert not first & fetched


def test_it_ends_as_soon_as_the_round_has_its_labels(
    busy: Workplace, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "CHUNK", 8)
    project = a_project(busy, files)

    class Labelling(dict[str, bytes]):
        def get(self, path: str, default: bytes | None = None) -> bytes | None:  # type: ignore[override]
            if len(files.asked) == 10:
                label_all(busy, project)
            return super().get(path, default)

    files.held = Labelling(files.held)
    assert fetch_ahead(busy, project.id, 1) == 16
    assert fetch_ahead(busy, project.id, 1) == 0, "the round is closed"


def test_it_makes_way_for_whatever_else_waits_for_this_worker(busy: Workplace, files: Files) -> None:
    project = a_project(busy, files)
    queues.queue(busy.redis, queues.GPU).enqueue("jobs.train.train", 2, 0)
    assert fetch_ahead(busy, project.id, 1) == 0
    assert files.asked == []


def test_a_label_studio_that_is_away_is_no_failure(busy: Workplace, files: Files) -> None:
    project = a_project(busy, files)
    files.broken = set(files.held)
    assert fetch_ahead(busy, project.id, 1) == 0
    with busy.store.read() as session:
        assert pool.problems(session, project) == {}, "the draw will see for itself"


def test_nothing_is_fetched_for_a_round_nobody_will_be_asked_for(busy: Workplace, files: Files) -> None:
    project = a_project(busy, files, mode=Mode.DIS)
    assert fetch_ahead(busy, project.id, 1) == 0
    everything = make_project(busy.store, tasks=4, studio_id=2, secret="another", studio_url=files.url)
    add_round(busy.store, everything, 0, [1, 2, 3, 4], wanted=4)
    label_all(busy, everything, [1])
    with busy.store.write() as session:
        pool.forget(session, projects.lock(session, everything.id), [2, 3, 4])
    assert fetch_ahead(busy, everything.id, 1) == 0
    assert files.asked == []


def test_it_is_enqueued_once_a_round_is_published(
    busy: Workplace, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = a_project(busy, files)
    add_round(busy.store, project, 1, [10, 11], wanted=2, publish=False)
    monkeypatch.setattr("jobs.publish.surface", lambda *_: None)
    publish_round(busy, project.id, 1)
    with busy.store.read() as session:
        assert rounds.by_number(session, project, 1).state == RoundState.OPEN
    queue = queues.queue(busy.redis, queues.GPU)
    assert queue.job_ids == [f"project-{project.id}-round-2-fetch"]
    prepare(busy, project, 2)
    assert queue.job_ids == [f"project-{project.id}-round-2-fetch"], "twice is once"
    prepare(Workplace(replace(busy.settings, redis_url="redis://127.0.0.1:1"), busy.store), project, 2)
