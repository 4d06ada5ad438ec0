"""Trains a round's model on every label so far, each with its weight."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy.orm import Session

from jobs import step, versions
from jobs.report import Report, describing
from jobs.rows import RowSource
from jobs.workplace import Workplace
from models import calibration, checkpoint, divergence
from models import card as cards
from models.card import BadCheckpoint, Origin
from models.classifier import Classifier
from models.learner import Diverged, Examples, Fitted, Learner, Rows
from models.plan import Plan
from models.workshop import way_of
from store import examples, pool, projects, rounds, subsets
from store.examples import Example
from store.tables import Model, Project, Round, RoundState, Subset

log = logging.getLogger(__name__)

TRIES = 3
"""A run that diverges is tried again from other initial weights."""
FOLDS = 3
"""In which the first model's accuracy on labels it has not seen is measured."""


def train(project_id: int, number: int, subset_id: int = 0, twin: int = 0) -> None:
    """The job. Killed at any moment it can run again: a checkpoint is replaced whole, and the store is told last.
    A round of a subset may have two of them, f and its `twin` g, which any two workers run side by side."""
    step.run(train_round, project_id, number, subset_id, twin)


def train_round(place: Workplace, project_id: int, number: int, subset_id: int = 0, twin: int = 0) -> None:
    with place.store.read() as session:
        project = projects.by_id(session, project_id)
        subset = subsets.by_id(session, subset_id) if subset_id else None
        round_ = rounds.by_number(session, project, number, subset)
        if round_.state != RoundState.CLOSED or (round_.g_trained_at if twin else round_.f_trained_at):
            return
        known = set(project.classes)
        labelled = [e for e in _examples(session, project, round_, subset) if e.class_name in known]
    began = time.monotonic()
    run = _Which(number, subset, bool(twin))
    plan, past, learner = _prepared(place, project, run)
    loaded = RowSource(place, project, learner).load([e.data for e in labelled], on_described=describing)
    if loaded.away:
        log.warning("project %s: %s images cannot be had now and are left out this time", project_id, len(loaded.away))
    usable = [labelled[i] for i in loaded.good]
    training = _Training(place, project, run, plan, learner, past, usable, loaded.rows)
    model, problem = training.run() if usable else (None, "not one label could be used")
    if model is not None:
        model.metrics["seconds_in_all"] = round(time.monotonic() - began, 3)
    with place.store.write() as session:
        project = projects.lock(session, project_id)
        project.training = plan.as_dict()
        for index, reason in loaded.bad.items():
            pool.set_aside(session, labelled[index].task_id, reason)
        round_ = rounds.by_number(session, project, number, subset)
        rounds.trained(session, project, round_, model, twin=run.twin, problem=problem)


def next_learner(place: Workplace, project: Project, number: int) -> Learner:
    """Who will learn from the annotators' round of this number."""
    return _prepared(place, project, _Which(number, subset=None, twin=False))[2]


def _prepared(place: Workplace, project: Project, run: _Which) -> tuple[Plan, _Past, Learner]:
    plan = place.workshop.decided(project.network, Plan.from_dict(project.training))
    with place.store.read() as session:
        past = _Past.of(session, project, _make(project, plan), run)
    learner = place.workshop.learner(project.network, plan, learning_rate=past.learning_rate, backbone=past.backbone)
    return plan, past, learner


def _examples(session: Session, project: Project, round_: Round, subset: Subset | None) -> list[Example]:
    """Of both kinds, always: what annotators have labelled and what is selected of tasks that came with a label. With a
    subset's round, annotators' labels are those of the rounds they had ended when it was drawn: the same for f and g,
    whenever they are trained."""
    if subset is None:
        current = subsets.current(session, project)
        return examples.of_project(session, project, up_to_round=round_.number, subset=current)
    ended = rounds.last_closed(session, project, round_.drawn_at)
    return examples.of_project(session, project, up_to_round=ended, subset=subset)


@dataclass(frozen=True)
class _Which:
    """Of a round's trainings, this one."""

    number: int
    subset: Subset | None
    twin: bool

    @property
    def version(self) -> str:
        return versions.version(self.number, self.subset, twin=self.twin)

    def seed(self, project: Project, attempt: int) -> int:
        """All that tells f from g."""
        parts = [project.rng_seed, self.number, attempt]
        if self.subset is not None:
            parts.append(2 * self.subset.stream + self.twin)
        return int(np.random.SeedSequence(parts).generate_state(1)[0])

    def __str__(self) -> str:
        return f"{f'subset {self.subset.name} ' if self.subset else ''}round {self.number}{' (g)' if self.twin else ''}"


@dataclass(frozen=True)
class _Past:
    """What earlier trainings left to this one; of models of another make, only the version in use counts."""

    version: str | None = None
    """The last model of the same kind."""
    learning_rate: float | None = None
    """As chosen on the seed set."""
    backbone: str | None = None
    """What heads were trained on so far."""
    seed_correct: int = 0
    seed_count: int = 0
    """How the first model did on the seed set's examples, each answered for without having been seen."""

    @classmethod
    def of(cls, session: Session, project: Project, make: str, run: _Which) -> _Past:
        models = rounds.models(session, project, run.subset, twin=run.twin)
        beside = rounds.models(session, project, run.subset) if run.twin else models
        like = [model.metrics for model in models if model.metrics.get("make") == make]
        like_beside = [model.metrics for model in beside if model.metrics.get("make") == make]
        first: dict[str, Any] = like[0] if like else {}
        return cls(
            version=models[-1].version if models else None,
            learning_rate=like_beside[0].get("learning_rate") if like_beside else None,
            backbone=like_beside[-1].get("backbone") if like_beside else None,
            seed_correct=int(first.get("seed_correct", 0)),
            seed_count=int(first.get("seed_count", 0)),
        )


@dataclass
class _Training:
    place: Workplace
    project: Project
    which: _Which
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
        problem = None
        for attempt in range(TRIES):
            seed = self.which.seed(self.project, attempt)
            start = self._start() if attempt == 0 else None
            try:
                fitted = self.learner.fit(examples, seed=seed, start=start, on_progress=Report())
                self._check(fitted, examples)
            except Diverged as error:
                problem = f"{error} (run {attempt + 1} of {TRIES}); the last good model stays"
                log.warning("project %s %s: %s", self.project.id, self.which, problem)
            else:
                return self._keep(fitted, examples, seed), None
        return None, problem

    def _check(self, fitted: Fitted, examples: Examples) -> None:
        """Far fewer right answers on the seed set, which it has learnt from, than the first model had on what it had
        not seen of it: a collapse."""
        places = self._seed_places()
        if self.past.seed_count and len(places):
            correct = _correct(fitted.logits(examples.rows[places]), examples, places)
            found = divergence.collapsed(self.past.seed_correct, self.past.seed_count, correct, len(places))
            if found:
                raise Diverged(found)

    def _keep(self, fitted: Fitted, examples: Examples, seed: int) -> Model:
        measured = self._measure(fitted, examples, seed)
        metrics = {**fitted.metrics, **measured}
        classifier = Classifier(
            self.learner,
            fitted,
            classes=self.project.classes,
            version=self.which.version,
            temperature=measured["temperature"],
        )
        origin = Origin(
            network=self.project.network,
            way=way_of(self.project.network, self.learner),
            seed=seed,
            round=self.which.number,
            training_set=_digest(self.usable),
            metrics=metrics,
        )
        folder = versions.folder(self.place.settings, self.project, classifier.version)
        checkpoint.save(folder, classifier, origin)
        self._prune(classifier.version)
        log.info("project %s %s: trained on %s examples, %s", self.project.id, self.which, len(examples), metrics)
        made = {"make": _make(self.project, self.plan), "backbone": self.learner.frozen}
        return Model(version=classifier.version, examples=len(examples), metrics={**metrics, **made})

    def _measure(self, fitted: Fitted, examples: Examples, seed: int) -> dict[str, float]:
        """The temperature, and of the first model how it does on the seed set: both from answers to labels that the
        model answering has not seen, so more models are trained for them. If one of those diverges, the model itself is
        still good, and only goes without."""
        measured = {"temperature": 1.0, "seed_correct": 0.0, "seed_count": 0.0}
        first = not self.past.seed_count
        if not (first or self.plan.calibrate) or len(examples) < 2:
            return measured
        learner = self.place.workshop.learner(
            self.project.network,
            self.plan,
            learning_rate=fitted.metrics.get("learning_rate"),
            backbone=self.learner.frozen,
        )
        folds = 5 if self.plan.calibrate else FOLDS
        try:
            unseen = calibration.out_of_fold(learner, examples, seed=seed, folds=folds, on_progress=Report())
        except Diverged as error:
            log.warning("project %s %s: not calibrated: %s", self.project.id, self.which, error)
            return measured
        if self.plan.calibrate:
            measured["temperature"] = calibration.temperature(unseen, examples.labels, examples.weights)
        if first:
            places = self._seed_places()
            measured["seed_correct"] = float(_correct(unseen[places], examples, places))
            measured["seed_count"] = float(len(places))
        return measured

    def _seed_places(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        return np.array([i for i, example in enumerate(self.usable) if example.seed], np.int64)

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
        """The new model and its twin, those in use, and the first stay; of the others as many as there is room for."""
        settings = self.place.settings
        twin = versions.version(self.which.number, self.which.subset, twin=not self.which.twin)
        with self.place.store.read() as session:
            keep = {version, twin, *rounds.versions_in_use(session, self.project)}
        folder = versions.folder(settings, self.project, version).parent
        for gone in checkpoint.prune(folder, most_bytes=int(settings.models_gigabytes * 2**30), keep=keep):
            log.info("project %s: the weights of %s made room", self.project.id, gone)


def _correct(logits: np.ndarray[Any, Any], examples: Examples, places: np.ndarray[Any, np.dtype[np.int64]]) -> int:
    return int((logits.argmax(axis=1) == examples.labels[places]).sum())


def _make(project: Project, plan: Plan) -> str:
    """What models must have in common for one to learn from how the other went."""
    return f"{project.network}, {plan.way}, {plan.recipe} recipe, learning rate {plan.learning_rate or 'of the recipe'}"


def _digest(usable: Sequence[Example]) -> str:
    lines = (f"{e.studio_id}\t{e.class_name}\t{e.weight!r}\n" for e in usable)
    return hashlib.sha256("".join(lines).encode()).hexdigest()
