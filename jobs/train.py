"""Trains a round's model on every label so far, each with its weight."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy.orm import Session

from jobs import step, versions
from jobs.rows import RowSource
from jobs.workplace import Workplace
from models import calibration, checkpoint, divergence
from models import card as cards
from models.card import BadCheckpoint, Origin
from models.classifier import Classifier
from models.learner import Diverged, Examples, Fitted, Learner, Progress, Rows
from models.plan import Plan
from models.workshop import way_of
from store import examples, pool, projects, rounds
from store.examples import Example
from store.tables import Model, Project, RoundState

log = logging.getLogger(__name__)

TRIES = 3
"""A run that diverges is tried again from other initial weights."""
LOG_SECONDS = 5.0


def train(project_id: int, number: int) -> None:
    """The job. Killed at any moment it can run again: a checkpoint is replaced whole, and the store is told last."""
    step.run(train_round, project_id, number)


def train_round(place: Workplace, project_id: int, number: int) -> None:
    with place.store.read() as session:
        project = projects.by_id(session, project_id)
        if rounds.by_number(session, project, number).state != RoundState.CLOSED:
            return
        known = set(project.classes)
        labelled = [e for e in examples.of_project(session, project, up_to_round=number) if e.class_name in known]
        past = _Past.of(session, project)
    began = time.monotonic()
    plan = Plan.from_dict(project.training)
    learner = place.workshop.learner(project.network, plan, learning_rate=past.learning_rate)
    loaded = RowSource(place, project, learner).load([e.data for e in labelled], on_described=_describing)
    usable = [labelled[i] for i in loaded.good]
    training = _Training(place, project, number, plan, learner, past, usable, loaded.rows)
    model, problem = training.run() if usable else (None, "not one label could be used")
    if model is not None:
        model.metrics["seconds_in_all"] = round(time.monotonic() - began, 3)
    with place.store.write() as session:
        project = projects.lock(session, project_id)
        for index, reason in loaded.bad.items():
            pool.set_aside(session, labelled[index].task_id, reason)
        rounds.trained(session, project, rounds.by_number(session, project, number), model, problem=problem)


@dataclass(frozen=True)
class _Past:
    """What earlier trainings of the project left to this one."""

    version: str | None
    """Of the model in use."""
    learning_rate: float | None
    """As chosen on the seed set."""
    seed_correct: int
    seed_count: int
    """How many of the seed set's examples the model trained on them alone gets right."""

    @classmethod
    def of(cls, session: Session, project: Project) -> _Past:
        models = rounds.models(session, project)
        first = models[0].metrics if models else {}
        return cls(
            version=models[-1].version if models else None,
            learning_rate=first.get("learning_rate"),
            seed_correct=int(first.get("seed_correct", 0)),
            seed_count=int(first.get("seed_count", 0)),
        )


@dataclass
class _Training:
    place: Workplace
    project: Project
    number: int
    plan: Plan
    learner: Learner
    past: _Past
    usable: Sequence[Example]
    rows: Rows

    def run(self) -> tuple[Model | None, str | None]:
        """The model of the first of several runs that is sound; or why there is none, and the project keeps the one
        it has."""
        names = list(self.project.classes)
        examples = Examples(
            self.rows,
            np.array([names.index(example.class_name) for example in self.usable], np.int64),
            np.array([example.weight for example in self.usable], np.float32),
            len(names),
        )
        start = self._start()
        problem = None
        for attempt in range(TRIES):
            seed = int(np.random.SeedSequence([self.project.rng_seed, self.number, attempt]).generate_state(1)[0])
            try:
                fitted = self.learner.fit(examples, seed=seed, start=start, on_progress=_Report())
                correct, count = self._on_seed_set(fitted, examples)
                return self._keep(fitted, examples, seed, correct, count), None
            except Diverged as error:
                problem = f"{error} (run {attempt + 1} of {TRIES}); the last good model stays"
                log.warning("project %s round %s: %s", self.project.id, self.number, problem)
        return None, problem

    def _on_seed_set(self, fitted: Fitted, examples: Examples) -> tuple[int, int]:
        """How many of the seed set's examples it gets right; far fewer than the first model did is a collapse."""
        places = np.array([i for i, example in enumerate(self.usable) if example.round_number == 0], np.int64)
        if not len(places):
            return 0, 0
        answers = fitted.logits(examples.rows[places]).argmax(axis=1)
        correct = int((answers == examples.labels[places]).sum())
        if self.past.seed_count:
            found = divergence.collapsed(self.past.seed_correct, self.past.seed_count, correct, len(places))
            if found:
                raise Diverged(found)
        return correct, len(places)

    def _keep(self, fitted: Fitted, examples: Examples, seed: int, correct: int, count: int) -> Model:
        temperature = calibration.calibrate(self.learner, examples, seed=seed) if self.plan.calibrate else 1.0
        metrics = {
            **fitted.metrics,
            "seed_correct": float(correct),
            "seed_count": float(count),
            "temperature": temperature,
        }
        classifier = Classifier(
            self.learner,
            fitted,
            classes=self.project.classes,
            version=versions.version(self.number),
            temperature=temperature,
        )
        origin = Origin(
            network=self.project.network,
            way=way_of(self.project.network, self.learner),
            seed=seed,
            round=self.number,
            training_set=_digest(self.usable),
            metrics=metrics,
        )
        folder = versions.folder(self.place.settings, self.project, classifier.version)
        checkpoint.save(folder, classifier, origin)
        self._prune(classifier.version)
        log.info(
            "project %s round %s: trained on %s examples, %s", self.project.id, self.number, len(examples), metrics
        )
        return Model(version=classifier.version, examples=len(examples), metrics=metrics)

    def _start(self) -> Fitted | None:
        """The model in use, where the plan goes on from it and it is of the same make."""
        if not self.plan.warm_start or self.past.version is None:
            return None
        folder = versions.folder(self.place.settings, self.project, self.past.version)
        try:
            last = checkpoint.load(folder, self.place.workshop)
        except BadCheckpoint as error:
            log.warning("project %s begins anew: %s", self.project.id, error)
            return None
        made = cards.read(folder)
        same = (
            made.classes == list(self.project.classes)
            and made.network == self.project.network
            and made.frozen == self.learner.frozen
        )
        return last.fitted if same else None

    def _prune(self, version: str) -> None:
        """The new model, the one in use until now, and the first stay; of the others as many as there is room for."""
        settings = self.place.settings
        keep = {version, self.past.version or version, versions.version(0)}
        folder = versions.folder(settings, self.project, version).parent
        for gone in checkpoint.prune(folder, most_bytes=int(settings.models_gigabytes * 2**30), keep=keep):
            log.info("project %s: the weights of %s made room", self.project.id, gone)


class _Report:
    """Tells how a training goes: to the job for `iwes status`, every epoch, and to the log every few seconds."""

    def __init__(self) -> None:
        self._logged = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        told = {
            "epoch": progress.epoch,
            "of": progress.of,
            "loss": round(progress.loss, 4),
            "accuracy": None if progress.accuracy is None else round(progress.accuracy, 4),
            "seconds_left": round(progress.seconds_left, 1),
        }
        step.note("progress", told)
        if time.monotonic() - self._logged > LOG_SECONDS:
            self._logged = time.monotonic()
            log.info("training: %s", told)


def _describing(done: int, of: int) -> None:
    step.note("progress", {"described": done, "of": of})
    log.info("described %s of %s images", done, of)


def _digest(usable: Sequence[Example]) -> str:
    lines = (f"{e.studio_id}\t{e.class_name}\t{e.weight!r}\n" for e in usable)
    return hashlib.sha256("".join(lines).encode()).hexdigest()
