"""How often the estimates of the whole loop hold the truth: real digits, real store, real draws, a simulated annotator.

`python -m benchmarks.loop_coverage` (`make bench-loop-coverage`). In each run the loop goes through a seed and a few
rounds: tasks are drawn and stored as in production, an annotator who knows the truth answers them, skipping some by
chance, and a logistic regression takes the place of the network. After each round the project's estimates are held
against the truth, which only the benchmark knows.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.box import SIMPLE
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import iwes
from jobs import estimates
from jobs.draw import as_draws, as_round, draw_readable
from jobs.foreseen import Foreseen
from jobs.rows import LoadedRows
from jobs.scoring import Opinions, Scorer
from jobs.settings import Settings
from jobs.versions import version
from jobs.workplace import Workplace
from store import examples, labels, pool, projects, rounds
from store.database import open_store
from store.tables import Draw, Model, Project

KEPT = (1.0, 1.0, 1.0, 1.0, 1.0, 0.6, 0.6, 0.6, 0.3, 0.3)
"""The part of each digit that is in the pool: classes of the same size would make their shares easy to guess."""
NOMINAL = 0.95


@dataclass(frozen=True)
class Plan:
    k: int = 50
    seed_size: int = 50
    rounds: int = 5
    noise: float = 0.0
    """The part of all tasks whose label is wrong, and so surprises the surest model. What annotators would say is the
    truth here."""
    reserve: float = 0.5
    skipped: float = 0.05
    """Of all tasks, whoever is asked, completely at random."""
    while_training: float = 0.5
    """Of the reserve, answered while a model trains."""


@dataclass(frozen=True, eq=False)
class Digits:
    pixels: NDArray[np.float64]
    label: NDArray[np.int64]

    @classmethod
    def load(cls, noise: float) -> Digits:
        pixels, label = load_digits(return_X_y=True)
        rng = np.random.default_rng(0)
        kept = rng.random(len(label)) < np.array(KEPT)[label]
        pixels, label = pixels[kept] / 16.0, label[kept]
        wrong = rng.random(len(label)) < noise
        return cls(pixels, np.where(wrong, (label + rng.integers(1, 10, len(label))) % 10, label))


@dataclass(frozen=True)
class Held:
    """One interval and the truth it should hold."""

    quantity: str
    round: int
    truth: float
    value: float
    low: float
    high: float

    @property
    def covered(self) -> bool:
        return self.low - 1e-12 <= self.truth <= self.high + 1e-12


class Beliefs(Opinions):
    """What the regression says of tasks; their images are rows of an array."""

    def __init__(self, digits: Digits, model: LogisticRegression, row: dict[int, int]) -> None:
        self._digits, self._model, self._row = digits, model, row
        self.classes = [str(digit) for digit in range(10)]

    def of(self, task_ids: Sequence[int]) -> tuple[LoadedRows, list[NDArray[np.float64]]]:
        rows = self._digits.pixels[[self._row[task_id] for task_id in task_ids]]
        belief = np.zeros((len(rows), 10))
        belief[:, self._model.classes_] = self._model.predict_proba(rows)
        return LoadedRows(rows=rows, good=np.arange(len(rows)), bad={}, away={}), [belief]


@dataclass
class Loop:
    """One project from its first draw to the end of its last round."""

    place: Workplace
    digits: Digits
    plan: Plan
    seed: int
    project_id: int = 0
    row: dict[int, int] = field(default_factory=dict)
    """Where each task's image is."""

    def __post_init__(self) -> None:
        self._chance = np.random.default_rng([self.seed, 1])
        self._unwilling = set(np.flatnonzero(self._chance.random(len(self.digits.label)) < self.plan.skipped).tolist())
        self._annotation = 0
        with self.place.store.write() as session:
            project = _project(self.plan, self.seed)
            session.add(project)
            session.flush()
            pool.mirror(session, project, {n + 1: {"image": n} for n in range(len(self.digits.label))})
            self.project_id = project.id
            self.row = {
                task.id: n - 1 for n, task in pool.known(session, project, range(1, len(self.digits.label) + 1)).items()
            }

    def run(self) -> Iterator[Held]:
        model: LogisticRegression | None = None
        for number in range(self.plan.rounds + 1):
            drawn_from = self._draw(number, model)
            self._answer(number)
            yield from self._held(number, drawn_from, model)
            model = self._train(number)
            self._answer_reserve(number)

    def _draw(self, number: int, model: LogisticRegression | None) -> list[int]:
        """As jobs.draw does it; returns the tasks it drew from."""
        with self.place.store.read() as session:
            project = projects.by_id(session, self.project_id)
            wanted = project.k if model else project.seed_size
            trained = rounds.current_model(session, project)
            task_ids = pool.drawable(session, project, at_least=wanted)
        rng_seed = [project.rng_seed, number]
        foreseen = Foreseen()
        if model is None:
            drawn = iwes.draw_seed(len(task_ids), wanted, rng=np.random.default_rng(rng_seed), reserve=project.reserve)
        else:
            scorer = Scorer(Beliefs(self.digits, model, self.row), "ent")
            found = draw_readable(self.place, scorer, project, task_ids, wanted, rng_seed, reserve=project.reserve)
            assert found is not None  # noqa: S101 - every image can be read
            task_ids, drawn = found
            foreseen = scorer.foreseen([task_ids[place] for place in drawn.index])
        with self.place.store.write() as session:
            rule = "ent" if model else rounds.SEED
            round_ = as_round(number, drawn, project, rule=rule, model=trained, wanted=wanted)
            round_.expected = foreseen.expected
            rounds.add(session, project, round_, as_draws(drawn, task_ids, foreseen))
            rounds.open_(session, round_)
        return task_ids

    def _answer(self, number: int) -> None:
        """In the order of the queue, until the round has its labels."""
        with self.place.store.write() as session:
            project = projects.lock(session, self.project_id)
            round_ = rounds.by_number(session, project, number)
            answers, labelled = [], 0
            for draw in round_.draws:
                if labelled == round_.wanted:
                    break
                answers.append(self._answered(draw))
                labelled += answers[-1][1].class_name is not None
            labels.record(session, project, answers)
            if rounds.close_if_complete(session, project) is None:
                raise RuntimeError(f"round {number} of run {self.seed} is not complete")

    def _answer_reserve(self, number: int) -> None:
        """Annotators go on while the model trains."""
        with self.place.store.write() as session:
            project = projects.lock(session, self.project_id)
            draws = [draw for draw in rounds.by_number(session, project, number).draws if draw.reserve]
            some = draws[: math.ceil(len(draws) * self.plan.while_training)]
            labels.record(session, project, [self._answered(draw) for draw in some])

    def _answered(self, draw: Draw) -> tuple[int, labels.NewLabel]:
        self._annotation += 1
        row, moment = self.row[draw.task_id], datetime(2026, 1, 1, tzinfo=UTC)
        class_name = None if row in self._unwilling else str(self.digits.label[row])
        return draw.task_id, labels.NewLabel(
            self._annotation, class_name, class_name is None, False, 1, created_at=moment, updated_at=moment
        )

    def _train(self, number: int) -> LogisticRegression:
        with self.place.store.write() as session:
            project = projects.lock(session, self.project_id)
            seen = examples.of_project(session, project, up_to_round=number)
            row = [self.row[example.task_id] for example in seen]
            model = LogisticRegression(C=1.0, max_iter=300, tol=1e-3)
            model.fit(self.digits.pixels[row], self.digits.label[row], [example.weight for example in seen])
            stored = Model(version=version(number), examples=len(seen), metrics={})
            rounds.trained(session, project, rounds.by_number(session, project, number), stored)
        return model

    def _held(self, number: int, drawn_from: list[int], model: LogisticRegression | None) -> Iterator[Held]:
        with self.place.store.read() as session:
            found = estimates.of_project(session, projects.by_id(session, self.project_id))
        for digit, share in enumerate(found.balance):
            yield _held("class balance", number, float((self.digits.label == digit).mean()), share.estimate)
        if model is None or found.judged is None:
            return
        rest = np.array([self.row[task_id] for task_id in drawn_from])
        right = model.predict(self.digits.pixels[rest]) == self.digits.label[rest]
        yield _held("accuracy on the rest", number, float(right.mean()), found.judged.estimate)
        for digit, recall in enumerate(found.recall):
            if recall.estimate is not None:
                of_class = right[self.digits.label[rest] == digit]
                yield _held("recall of a class", number, float(of_class.mean()), recall.estimate)


def _held(quantity: str, number: int, truth: float, estimate: iwes.Estimate) -> Held:
    return Held(quantity, number, truth, estimate.value, estimate.low, estimate.high)


def _project(plan: Plan, seed: int) -> Project:
    return Project(
        studio_url="http://studio.test",
        studio_id=seed,
        title="digits",
        token="",
        secret=f"run {seed}",
        backend_url="",
        control="label",
        target="image",
        field="image",
        classes=[str(digit) for digit in range(10)],
        seed_size=plan.seed_size,
        k=plan.k,
        cap=2.0,
        floor=0.05,
        reserve=plan.reserve,
        sharpness=1.0,
        network="small-cnn",
        rng_seed=seed,
    )


def simulate(plan: Plan, seeds: Sequence[int], folder: Path) -> Iterator[list[Held]]:
    """Each run in a store of its own, a copy of an empty one."""
    digits, empty = Digits.load(plan.noise), folder / "empty.db"
    open_store(f"sqlite:///{empty}").close()
    for seed in seeds:
        shutil.copy(empty, folder / "store.db")
        settings = Settings.from_env({"IWES_HOME": str(folder), "DATABASE_URL": f"sqlite:///{folder / 'store.db'}"})
        store = open_store(settings.database_url)
        try:
            yield list(Loop(Workplace(settings, store), digits, plan, seed).run())
        finally:
            store.close()


@dataclass(frozen=True)
class Coverage:
    quantity: str
    round: int | None
    """None for all rounds together."""
    intervals: int
    covered: float
    error: float
    """One standard error of the share covered; a run's intervals are not independent, so it is that of run means."""
    half_width: float
    bias: float
    """Of the estimates, on average."""
    rms: float
    """Their typical error, by its root mean square."""


def summary(runs: Sequence[Sequence[Held]]) -> list[Coverage]:
    groups: dict[tuple[str, int | None], list[list[Held]]] = defaultdict(list)
    for run in runs:
        mine: dict[tuple[str, int | None], list[Held]] = defaultdict(list)
        for held in run:
            mine[held.quantity, held.round].append(held)
            mine[held.quantity, None].append(held)
        for key, some in mine.items():
            groups[key].append(some)
    ordered = sorted(groups.items(), key=lambda item: (item[0][0], math.inf if item[0][1] is None else item[0][1]))
    return [_coverage(quantity, number, of_runs) for (quantity, number), of_runs in ordered]


def _coverage(quantity: str, number: int | None, runs: Sequence[Sequence[Held]]) -> Coverage:
    every = [held for run in runs for held in run]
    means = [sum(held.covered for held in run) / len(run) for run in runs]
    return Coverage(
        quantity=quantity,
        round=number,
        intervals=len(every),
        covered=sum(held.covered for held in every) / len(every),
        error=float(np.std(means) / math.sqrt(len(means))),
        half_width=float(np.mean([(held.high - held.low) / 2 for held in every])),
        bias=float(np.mean([held.value - held.truth for held in every])),
        rms=float(np.sqrt(np.mean([(held.value - held.truth) ** 2 for held in every]))),
    )


def table(found: Sequence[Coverage]) -> Table:
    shown = Table(
        "quantity", "round", "intervals", "covered", "± s.e.", "half-width", "bias", "r.m.s. error", box=SIMPLE
    )
    for one in found:
        shown.add_row(
            one.quantity,
            "all" if one.round is None else str(one.round),
            f"{one.intervals:,}",
            f"{one.covered:.1%}",
            f"{one.error:.1%}",
            f"{one.half_width:.4f}",
            f"{one.bias:+.4f}",
            f"{one.rms:.4f}",
            style="bold" if one.round is None else None,
        )
    return shown


def main() -> None:
    asked = argparse.ArgumentParser(prog="python -m benchmarks.loop_coverage", description=__doc__)
    asked.add_argument("--runs", type=int, default=200, help="of the whole loop (200)")
    asked.add_argument("--rounds", type=int, default=Plan.rounds, help="after the seed (5)")
    asked.add_argument("--k", type=int, default=Plan.k, help="labels in a round, and in the seed (50)")
    asked.add_argument("--noise", type=float, default=0.0, help="the part of all labels that is wrong (0)")
    asked.add_argument("--seed", type=int, default=1, help="of the first run; the others count on from it")
    asked.add_argument("--json", type=Path, help="a file for the figures")
    given = asked.parse_args()
    plan = Plan(k=given.k, seed_size=given.k, rounds=given.rounds, noise=given.noise)
    console, begun = Console(width=None if sys.stdout.isatty() else 120), time.monotonic()
    with TemporaryDirectory(prefix="iwes-coverage-") as folder:
        runs = simulate(plan, range(given.seed, given.seed + given.runs), Path(folder))
        found = summary(list(track(runs, total=given.runs, console=console, description="runs")))
    console.print(table(found))
    seconds = time.monotonic() - begun
    console.print(
        f"{given.runs} runs of {given.rounds} rounds after a seed, k = {given.k}, {given.noise:.0%} of all labels "
        f"wrong, {plan.skipped:.0%} skipped, in {seconds:.0f} s"
    )
    if given.json:
        result: dict[str, Any] = {"plan": vars(plan), "runs": given.runs, "seconds": round(seconds, 1)}
        result["nominal"], result["coverage"] = NOMINAL, [vars(one) for one in found]
        given.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
