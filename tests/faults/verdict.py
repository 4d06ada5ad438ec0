"""What must hold after all the killing, each promise as a list of the cases that break it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import joinedload

from jobs.publish import weights_of
from jobs.workplace import Workplace
from store.tables import Draw, Label, Model, Round, RoundState, Task
from tests.faults.annotator import Entry
from tests.faults.studio_side import Held, StudioSide

SHOWN = 5


@dataclass(frozen=True)
class Check:
    promise: str
    broken: list[str]

    def __str__(self) -> str:
        if not self.broken:
            return f"✓ {self.promise}"
        more = len(self.broken) - SHOWN
        lines = [*self.broken[:SHOWN], *([f"and {more} more"] if more > 0 else [])]
        return "\n".join([f"✗ {self.promise}", *(f"    {line}" for line in lines)])


@dataclass(frozen=True)
class StoreSide:
    """Everything the store knows of a project, at one moment."""

    labels: Sequence[Label]
    draws: Sequence[Draw]
    rounds: Sequence[Round]
    models: Sequence[Model]
    tasks: Mapping[int, int]
    """Label Studio's id of a task by ours."""

    @classmethod
    def read(cls, place: Workplace, project_id: int) -> StoreSide:
        with place.store.snapshot() as session:
            of_round = select(Draw).join(Round).where(Round.project_id == project_id, Round.subset_id.is_(None))
            return cls(
                labels=session.scalars(select(Label).where(Label.project_id == project_id)).all(),
                draws=session.scalars(of_round.options(joinedload(Draw.round))).all(),
                rounds=session.scalars(
                    select(Round).where(Round.project_id == project_id).order_by(Round.number, Round.id)
                ).all(),
                models=session.scalars(select(Model).where(Model.project_id == project_id)).all(),
                tasks={
                    ours: theirs
                    for ours, theirs in session.execute(
                        select(Task.id, Task.studio_id).where(Task.project_id == project_id, ~Task.gone)
                    )
                },
            )

    @property
    def live(self) -> list[Label]:
        return [label for label in self.labels if not label.deleted]


def judge(store: StoreSide, studio: StudioSide, book: Mapping[int, Entry]) -> list[Check]:
    return [
        Check("Label Studio kept everything it acknowledged", acknowledged(studio, book)),
        Check("Label Studio and the store agree on every annotation", agreement(store, studio)),
        Check("each label has at most one draw, and that is one of its own task", draws_of_labels(store)),
        Check("every label belongs to the round that asked for it", right_rounds(store, studio)),
        Check("every round was trained exactly once", trainings(store)),
        Check("no label is counted in two rounds", counted_once(store)),
        Check("rounds ended only when they were complete", completeness(store)),
        Check("the weights beside the images are the store's", weights(store, studio)),
        Check("annotators are on the newest queue, which holds each of its tasks once", served(store, studio)),
    ]


def acknowledged(studio: StudioSide, book: Mapping[int, Entry]) -> list[str]:
    believed = {number: (e.task, e.choice) for number, e in book.items() if not e.deleted}
    held = {number: (held.task, held.choice) for number, held in studio.annotations.items()}
    return _differences(believed, held, "the annotators", "Label Studio")


def agreement(store: StoreSide, studio: StudioSide) -> list[str]:
    ours = {
        label.annotation_id: (store.tasks.get(label.task_id), label.class_name, label.skipped) for label in store.live
    }
    theirs = {number: (held.task, held.choice, held.skipped) for number, held in studio.annotations.items()}
    return _differences(ours, theirs, "the store", "Label Studio")


def draws_of_labels(store: StoreSide) -> list[str]:
    """A label holds one draw at most by its nature; that draw must be of its task, and a task is drawn again only
    after its label was taken back or where it was never labelled."""
    by_id = {draw.id: draw for draw in store.draws}
    broken = []
    draws_per_task: dict[int, set[int]] = {}
    for label in store.live:
        if label.draw_id is None:
            continue
        draw = by_id.get(label.draw_id)
        if draw is None or draw.task_id != label.task_id:
            broken.append(f"annotation {label.annotation_id} is joined to a draw of another task")
        elif not label.skipped:
            draws_per_task.setdefault(label.task_id, set()).add(draw.id)
    broken += [
        f"task {store.tasks.get(task)} answers {len(ids)} draws" for task, ids in draws_per_task.items() if len(ids) > 1
    ]
    return broken


def right_rounds(store: StoreSide, studio: StudioSide) -> list[str]:
    """Label Studio notes at each submit which queue the task came from; where it does not, because the queue had been
    switched meanwhile, the draw must at least be older than the label."""
    drawn: dict[int, list[Draw]] = {}
    for draw in store.draws:
        drawn.setdefault(draw.task_id, []).append(draw)
    by_id = {draw.id: draw for draw in store.draws}
    broken = []
    for label in store.live:
        held = studio.annotations.get(label.annotation_id)
        if held is None:
            continue  # told by `agreement`
        draw = by_id.get(label.draw_id) if label.draw_id is not None else None
        reason = _wrong_round(draw, drawn.get(label.task_id, []), held)
        if reason:
            broken.append(f"annotation {label.annotation_id} of task {held.task}: {reason}")
    return broken


def _wrong_round(draw: Draw | None, drawn: list[Draw], held: Held) -> str | None:
    joined = f"joined to round {draw.round.number}" if draw else "joined to no round"
    if held.queue is not None:
        return None if draw and draw.round.queue == held.queue else f"served from {held.queue}, but {joined}"
    if draw is not None and draw.round.drawn_at > held.created_at:
        return f"made before the draw of the round it is {joined}"
    shown = [one for one in drawn if one.round.opened_at and one.round.opened_at < held.created_at]
    if draw is None and shown:
        return f"{joined}, although round {shown[-1].round.number} had asked for it"
    return None


def trainings(store: StoreSide) -> list[str]:
    numbers = [round_.number for round_ in store.rounds]
    broken = [] if numbers == list(range(len(numbers))) else [f"the rounds are numbered {numbers}"]
    for round_ in store.rounds:
        made = [model for model in store.models if model.round_number == round_.number]
        trained = round_.state == RoundState.TRAINED
        if len(made) > 1:
            broken.append(f"round {round_.number} has {len(made)} models")
        elif trained and not made and round_.problem is None:
            broken.append(f"round {round_.number} counts as trained but has no model")
        elif made and not trained:
            broken.append(f"round {round_.number} is {round_.state} but has a model")
    broken += [
        f"round {round_.number} is {round_.state}, but later rounds exist"
        for round_ in store.rounds[:-1]
        if round_.state != RoundState.TRAINED
    ]
    return broken


def counted_once(store: StoreSide) -> list[str]:
    """A label carries one round's number; no training may have seen more tasks than were labelled until its round."""
    broken = []
    for model in store.models:
        until = {label.task_id for label in store.labels if label.round_number <= model.round_number}
        if model.examples > len(until):
            broken.append(f"round {model.round_number} was trained on {model.examples} of {len(until)} labelled tasks")
    last = len(store.rounds)
    broken += [
        f"annotation {label.annotation_id} counts for round {label.round_number}, which is not near"
        for label in store.labels
        if not 0 <= label.round_number <= last
    ]
    return broken


def left_out(store: StoreSide) -> int:
    """Labels that a training should have seen and did not, because their images could not be had at that moment."""
    missing = 0
    for model in store.models:
        sure = {x.task_id for x in store.live if x.round_number <= model.round_number and x.class_name is not None}
        missing += max(0, len(sure) - model.examples)
    return missing


def completeness(store: StoreSide) -> list[str]:
    """As many of its draws were labelled as it wanted, or all were answered; labels since deleted count here."""
    answered: dict[int, bool] = {}
    for label in store.labels:
        if label.draw_id is not None:
            answered[label.draw_id] = answered.get(label.draw_id, False) or label.class_name is not None
    skipped = {label.task_id for label in store.labels if label.skipped}
    broken = []
    for round_ in store.rounds:
        if round_.state not in (RoundState.CLOSED, RoundState.TRAINED) or not round_.wanted:
            continue
        own = [draw for draw in store.draws if draw.round_id == round_.id]
        labelled = sum(answered.get(draw.id, False) for draw in own)
        settled = sum(draw.id in answered or draw.task_id in skipped for draw in own)
        if labelled < round_.wanted and settled < len(own):
            broken.append(f"round {round_.number} ended with {labelled} of {round_.wanted} labels")
    return broken


def weights(store: StoreSide, studio: StudioSide) -> list[str]:
    """Of the newest round that asked for the task and was shown; a task never asked for carries none."""
    newest: dict[int, Draw] = {}
    for draw in sorted(store.draws, key=lambda draw: draw.round.number):
        if draw.round.opened_at is not None:
            newest[draw.task_id] = draw
    broken = []
    for ours, theirs in store.tasks.items():
        data = {key: value for key, value in studio.data.get(theirs, {}).items() if key.startswith("al_")}
        expected = weights_of(newest[ours]) if ours in newest else {}
        if data != expected:
            broken.append(f"task {theirs} carries {data}, not {expected}")
    return broken


def served(store: StoreSide, studio: StudioSide) -> list[str]:
    shown = [round_ for round_ in store.rounds if round_.opened_at is not None]
    if not shown:
        return ["no round was ever shown"]
    newest = shown[-1]
    if studio.served != newest.queue:
        return [f"annotators are on {studio.served}, not on {newest.queue}"]
    wanted = {store.tasks[d.task_id]: 1 for d in store.draws if d.round_id == newest.id and d.task_id in store.tasks}
    return _differences(wanted, dict(studio.queues.get(newest.queue, {})), "the round's draws", "the queue")


def _differences(left: Mapping[int, object], right: Mapping[int, object], ours: str, theirs: str) -> list[str]:
    return [
        f"{number}: {ours} {_says(left, number)}, {theirs} {_says(right, number)}"
        for number in sorted({*left, *right})
        if left.get(number) != right.get(number)
    ]


def _says(side: Mapping[int, object], number: int) -> str:
    return f"says {side[number]}" if number in side else "knows nothing of it"
