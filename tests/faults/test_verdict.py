"""The verdict itself: it finds nothing where nothing is wrong, and each broken promise where one is planted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from jobs.publish import weights_of
from store.tables import Draw, Label, Model, Round, RoundState
from tests.faults.annotator import Entry
from tests.faults.studio_side import Held, StudioSide
from tests.faults.verdict import StoreSide, judge

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass
class Sides:
    store: StoreSide
    studio: StudioSide
    book: dict[int, Entry]

    def broken(self) -> list[str]:
        return [check.promise for check in judge(self.store, self.studio, self.book) if check.broken]


@pytest.fixture
def sides() -> Sides:
    """Two rounds of two tasks each: the first is trained, the second waits for its second label. Task 100+n of Label
    Studio is our task n, and annotation n is the label of task n."""
    rounds = [a_round(0, RoundState.TRAINED, [1, 2]), a_round(1, RoundState.OPEN, [3, 4])]
    draws = [draw for round_ in rounds for draw in round_.draws]
    labels = [a_label(1, draws[0]), a_label(2, draws[1]), a_label(3, draws[2])]
    model = Model(version="v0", round_number=0, examples=2, metrics={})
    data: dict[int, dict[str, object]] = {100 + draw.task_id: {"image": "x", **weights_of(draw)} for draw in draws}
    return Sides(
        StoreSide(labels, draws, rounds, [model], tasks={n: 100 + n for n in range(1, 6)}),
        StudioSide(
            annotations={
                n: Held(100 + n, "7", False, NOON + timedelta(hours=n > 2, minutes=30), f"iwes-queue-{int(n > 2)}")
                for n in (1, 2, 3)
            },
            data={**data, 105: {"image": "x"}},
            served="iwes-queue-1",
            queues={"iwes-queue-1": Counter({103: 1, 104: 1})},
            miscounted=0,
        ),
        {n: Entry(100 + n, "7") for n in (1, 2, 3)},
    )


def a_round(number: int, state: RoundState, tasks: list[int]) -> Round:
    began = NOON + timedelta(hours=number)
    round_ = Round(id=number + 1, number=number, state=state, wanted=len(tasks), drawn_at=began, opened_at=began)
    chances = {"probability": 0.5, "weight": 2.0, "inclusion": 0.5}
    round_.draws = [Draw(id=task, task_id=task, round_id=round_.id, rank=task, **chances) for task in tasks]
    return round_


def a_label(number: int, draw: Draw) -> Label:
    return Label(
        annotation_id=number,
        task_id=draw.task_id,
        class_name="7",
        skipped=False,
        deleted=False,
        draw_id=draw.id,
        round_number=draw.round.number,
    )


def test_nothing_is_found_where_nothing_is_wrong(sides: Sides) -> None:
    assert sides.broken() == []


def lose_a_label(sides: Sides) -> None:
    sides.store = replace(sides.store, labels=sides.store.labels[:-1])


def misread_a_class(sides: Sides) -> None:
    sides.store.labels[0].class_name = "1"


def keep_a_deleted_label(sides: Sides) -> None:
    del sides.studio.annotations[3]
    sides.book[3].deleted = True


def lose_an_acknowledged_answer(sides: Sides) -> None:
    del sides.studio.annotations[3]
    sides.store.labels[2].deleted = True


def join_to_the_draw_of_another_task(sides: Sides) -> None:
    sides.store.labels[0].draw_id = 2


def join_to_no_draw(sides: Sides) -> None:
    sides.store.labels[2].draw_id = None


def join_to_a_later_round(sides: Sides) -> None:
    late = Draw(id=9, task_id=1, rank=9, probability=0.5, weight=2.0, inclusion=0.5, round=sides.store.rounds[1])
    late.round_id = 2
    sides.store = replace(sides.store, draws=[*sides.store.draws, late])
    sides.store.labels[0].draw_id = 9
    sides.studio.queues["iwes-queue-1"][101] = 1


def train_twice(sides: Sides) -> None:
    again = Model(version="v0b", round_number=0, examples=2, metrics={})
    sides.store = replace(sides.store, models=[*sides.store.models, again])


def lose_a_model(sides: Sides) -> None:
    sides.store = replace(sides.store, models=[])


def number_a_round_twice(sides: Sides) -> None:
    sides.store.rounds[1].number = 0
    sides.studio = replace(
        sides.studio, served="iwes-queue-0", queues={"iwes-queue-0": sides.studio.queues["iwes-queue-1"]}
    )


def count_a_label_twice(sides: Sides) -> None:
    sides.store.models[0].examples = 3


def end_a_round_early(sides: Sides) -> None:
    sides.store.rounds[1].state = RoundState.CLOSED


def overwrite_a_weight(sides: Sides) -> None:
    sides.studio.data[104]["al_weight"] = 1.0


def leave_a_weight_behind(sides: Sides) -> None:
    sides.studio.data[105]["al_weight"] = 1.0


def serve_the_old_queue(sides: Sides) -> None:
    sides.studio = replace(sides.studio, served="iwes-queue-0")


def double_a_queue_entry(sides: Sides) -> None:
    sides.studio.queues["iwes-queue-1"][104] = 2


@pytest.mark.parametrize(
    ("plant", "found"),
    [
        (lose_a_label, "agree"),
        (misread_a_class, "agree"),
        (keep_a_deleted_label, "agree"),
        (lose_an_acknowledged_answer, "acknowledged"),
        (join_to_the_draw_of_another_task, "own task"),
        (join_to_no_draw, "asked for it"),
        (join_to_a_later_round, "asked for it"),
        (train_twice, "trained"),
        (lose_a_model, "trained"),
        (number_a_round_twice, "trained"),
        (count_a_label_twice, "two rounds"),
        (end_a_round_early, "complete"),
        (overwrite_a_weight, "weights"),
        (leave_a_weight_behind, "weights"),
        (serve_the_old_queue, "newest queue"),
        (double_a_queue_entry, "newest queue"),
    ],
)
def test_a_planted_fault_is_found(sides: Sides, plant: Callable[[Sides], None], found: str) -> None:
    plant(sides)
    assert any(found in promise for promise in sides.broken())
