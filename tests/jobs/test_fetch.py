"""While labels are awaited, the images of the next draw are fetched, so that it does not have to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from jobs import draw, fetch, queues
from jobs.draw import draw_round
from jobs.fetch import fetch_ahead
from jobs.loop import prepare
from jobs.publish import publish
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
    monkeypatch.setattr(fetch, "SCORING_BATCH", 2)
    monkeypatch.setattr(draw, "SCORING_BATCH", 8)
    project = a_project(busy, files, k=2, reserve=0.0, floor=0.9)
    assert fetch_ahead(busy, project.id, 1) == 4, "with this floor a draw of two hardly looks at more than three"
    first = set(files.asked)
    fetched = asked_by_the_draw(busy, project, files)
    assert len(fetched) == 4, "the draw looked at eight, the four that were there among them"
    assert not first & set(fetched)


def test_it_ends_as_soon_as_the_round_has_its_labels(busy: Workplace, files: Files) -> None:
    project = a_project(busy, files)

    class Labelling(dict[str, bytes]):
        def get(self, path: str, default: bytes | None = None) -> bytes | None:  # type: ignore[override]
            if len(files.asked) == 10:
                label_all(busy, project)
            return super().get(path, default)

    files.held = Labelling(files.held)
    assert fetch_ahead(busy, project.id, 1) == 16
    assert fetch_ahead(busy, project.id, 1) == 0, "the round is closed"


@pytest.mark.parametrize(
    ("waiting", "served", "fetched"),
    [
        (queues.GPU, None, 0),
        (queues.GPU, "gpu", 0),
        (queues.STUDIO, "gpu", COUNT - len(SEED)),
        (queues.STUDIO, "studio,gpu", 0),
    ],
)
def test_it_makes_way_for_whatever_waits_for_this_worker(
    busy: Workplace, files: Files, monkeypatch: pytest.MonkeyPatch, waiting: str, served: str | None, fetched: int
) -> None:
    project = a_project(busy, files)
    other = queues.queue(busy.redis, queues.GPU)
    other.enqueue("jobs.fetch.fetch", 2, 1, job_id="project-2-round-1-fetch")
    queues.queue(busy.redis, waiting).enqueue("jobs.train.train", 2, 0, job_id="project-2-round-0-train")
    if served:
        mine = other.create_job("jobs.fetch.fetch")
        mine.worker_name = "one"
        busy.redis.hset("rq:worker:one", "queues", served)
        monkeypatch.setattr(fetch, "get_current_job", lambda: mine)
    assert fetch_ahead(busy, project.id, 1) == fetched
    assert len(files.asked) == fetched


def test_a_label_studio_that_is_away_is_no_failure(busy: Workplace, files: Files) -> None:
    project = a_project(busy, files)
    files.broken = set(files.held)
    assert fetch_ahead(busy, project.id, 1) == 0
    with busy.store.read() as session:
        assert pool.problems(session, project) == {}, "the draw will see for itself"


@pytest.mark.parametrize("way", ["head", "full"])
def test_an_image_that_is_not_there_is_set_aside_and_the_order_without_it_is_fetched(
    busy: Workplace, files: Files, way: str
) -> None:
    project = a_project(busy, files, training={"way": way})
    for n in (20, 21):
        del files.held[f"/data/{n}.png"]
    assert fetch_ahead(busy, project.id, 1) == COUNT - len(SEED) - 2
    with busy.store.read() as session:
        assert sum(pool.problems(session, project).values()) == 2
    assert asked_by_the_draw(busy, project, files) == []


@pytest.mark.parametrize("way", ["head", "full"])
def test_a_draw_goes_on_where_all_is_fetched_but_a_few_that_are_not_served(
    busy: Workplace, files: Files, way: str
) -> None:
    project = a_project(busy, files, training={"way": way})
    assert fetch_ahead(busy, project.id, 1) == COUNT - len(SEED)
    new = range(COUNT + 1, COUNT + 4)
    with busy.store.write() as session:
        pool.mirror(session, project, {n: {"image": f"/data/{n}.png"} for n in new})
    assert set(asked_by_the_draw(busy, project, files)) == {f"/data/{n}.png" for n in new}
    with busy.store.read() as session:
        assert pool.problems(session, project) == {}, "all that was fetched was refused: who knows whose fault it is"


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
    queue = queues.queue(busy.redis, queues.GPU)
    prepare(busy, project.id)
    assert queue.job_ids == [], "nobody can label this round yet"
    monkeypatch.setattr("jobs.publish.surface", lambda *_: None)
    monkeypatch.setenv("IWES_HOME", str(busy.settings.home))
    monkeypatch.setenv("REDIS_URL", busy.settings.redis_url)
    monkeypatch.setenv("DATABASE_URL", busy.settings.database_url)
    publish(project.id, 1)
    with busy.store.read() as session:
        assert rounds.by_number(session, project, 1).state == RoundState.OPEN
    assert queue.job_ids == [f"project-{project.id}-round-2-fetch"]
    prepare(busy, project.id)
    assert queue.job_ids == [f"project-{project.id}-round-2-fetch"], "twice is once"
    prepare(Workplace(replace(busy.settings, redis_url="redis://127.0.0.1:1"), busy.store), project.id)


@pytest.mark.parametrize("change", [{"connected": False}, {"mode": Mode.LOSS}])
def test_it_ends_when_nobody_is_asked_any_more(busy: Workplace, files: Files, change: dict[str, object]) -> None:
    project = a_project(busy, files)

    class Changing(dict[str, bytes]):
        def get(self, path: str, default: bytes | None = None) -> bytes | None:  # type: ignore[override]
            with busy.store.write() as session:
                for name, value in change.items():
                    setattr(projects.lock(session, project.id), name, value)
            return super().get(path, default)

    files.held = Changing(files.held)
    assert fetch_ahead(busy, project.id, 1) == 8
