"""What a learner reads of a task is computed once per image, wherever the image is known from."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from jobs import rows
from jobs.images import NothingServed
from jobs.rows import RowSource
from jobs.workplace import Workplace
from models.images import decode
from models.plan import Plan
from store.database import Store
from store.tables import Project
from tests.conftest import make_project
from tests.files import Files, picture


class Counting:
    """Describes an image by its mean colour, and counts how many it was given."""

    input_size = 28

    def __init__(self, name: str | None = "mean-1") -> None:
        self.frozen = name
        self.described = 0

    def describe(self, images: np.ndarray) -> np.ndarray:
        self.described += len(images)
        return images.mean(axis=(2, 3)).astype(np.float32)


@pytest.fixture
def files() -> Iterator[Files]:
    with Files() as files:
        files.held = {f"/data/{n}.png": picture(noise=n) for n in range(1, 9)}
        yield files


@pytest.fixture
def project(store: Store, files: Files) -> Project:
    return make_project(store, studio_url=files.url)


def tasks(*numbers: int) -> list[dict[str, str]]:
    return [{"image": f"/data/{n}.png"} for n in numbers]


def mean_of(number: int) -> np.ndarray:
    return decode(picture(noise=number), size=28).mean(axis=(1, 2))


def test_rows_come_in_the_order_asked_for_known_or_new(place: Workplace, project: Project) -> None:
    source = RowSource(place, project, Counting())  # type: ignore[arg-type]
    source.load(tasks(5, 2))
    loaded = source.load(tasks(1, 2, 3, 5, 2))
    np.testing.assert_allclose(loaded.rows[:], [mean_of(n) for n in (1, 2, 3, 5, 2)], rtol=1e-6)
    assert loaded.good.tolist() == [0, 1, 2, 3, 4]


def test_an_image_is_described_once_for_all_learners_with_the_same_frozen_part(
    place: Workplace, project: Project
) -> None:
    first, second, other = Counting(), Counting(), Counting("mean-2")
    for learner in (first, second, other):
        RowSource(place, project, learner).load(tasks(1, 2, 3))  # type: ignore[arg-type]
    assert first.described == 1 + 3, "a blank one to know the shape, and the three"
    assert second.described == 0
    assert other.described == 1 + 3


def test_the_same_image_under_another_address_is_not_described_again(
    place: Workplace, project: Project, files: Files
) -> None:
    files.held |= {f"/data/copy-{n}.png": files.held[f"/data/{n}.png"] for n in (1, 2)}
    learner = Counting()
    source = RowSource(place, project, learner)  # type: ignore[arg-type]
    source.load(tasks(1, 2))
    before = learner.described
    loaded = source.load([{"image": "/data/copy-2.png"}, *tasks(3), {"image": "/data/copy-1.png"}])
    assert learner.described == before + 1
    np.testing.assert_allclose(loaded.rows[:], [mean_of(n) for n in (2, 3, 1)], rtol=1e-6)


def test_bad_images_leave_the_rows_of_the_others_where_they_belong(
    place: Workplace, project: Project, files: Files
) -> None:
    files.held["/data/2.png"] = b"<html>"
    source = RowSource(place, project, Counting())  # type: ignore[arg-type]
    loaded = source.load([*tasks(1, 2, 3), {"image": ""}, *tasks(4)])
    assert loaded.good.tolist() == [0, 2, 4]
    assert sorted(loaded.bad) == [1, 3]
    np.testing.assert_allclose(loaded.rows[:], [mean_of(n) for n in (1, 3, 4)], rtol=1e-6)


def test_a_learner_with_nothing_frozen_reads_the_images(place: Workplace, project: Project) -> None:
    learner = place.workshop.learner("small-cnn", Plan())
    loaded = RowSource(place, project, learner).load(tasks(4, 1))
    np.testing.assert_array_equal(loaded.rows[:], [decode(picture(noise=n), size=28) for n in (4, 1)])


def test_no_task_gives_no_row(place: Workplace, project: Project) -> None:
    loaded = RowSource(place, project, Counting()).load([])  # type: ignore[arg-type]
    assert loaded.rows.shape == (0, 3)


@pytest.mark.parametrize("frozen", [True, False])
def test_a_few_images_that_are_not_served_are_left_out_and_for_most_of_them_it_is_waited(
    place: Workplace, project: Project, files: Files, monkeypatch: pytest.MonkeyPatch, frozen: bool
) -> None:
    """Also where they are described bit by bit, and each bit is fewer than what is known."""
    monkeypatch.setattr(rows, "CHUNK", 2)
    learner = Counting() if frozen else place.workshop.learner("small-cnn", Plan())
    source = RowSource(place, project, learner)  # type: ignore[arg-type]
    source.load(tasks(1, 2, 3))
    few = source.load(tasks(1, 11, 2, 12, 3))
    assert (few.good.tolist(), sorted(few.away), few.bad) == ([0, 2, 4], [1, 3], {})
    with pytest.raises(NothingServed):
        source.load(tasks(1, 2, 3, 11, 12, 13, 14))
