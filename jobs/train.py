"""Trains a round's model on every label so far, each with its weight."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Sequence

import numpy as np

from jobs import step, versions
from jobs.images import ImageSource
from jobs.workplace import Workplace
from models import checkpoint, networks, training
from models.classifier import Classifier
from store import examples, pool, projects, rounds
from store.examples import Example
from store.tables import Model, Project, RoundState

log = logging.getLogger(__name__)

TRIES = 3
"""A run that diverges is tried again from other initial weights."""


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
    began = time.monotonic()
    source = ImageSource(
        project, place.studio(project).client, place.settings.image_cache, networks.input_size(project.network)
    )
    loaded = source.load([example.data for example in labelled])
    usable = [labelled[i] for i in loaded.good]
    model = _fit(place, project, number, usable, loaded.images) if usable else None
    if model is not None:
        model.metrics["seconds_in_all"] = round(time.monotonic() - began, 3)
    with place.store.write() as session:
        project = projects.lock(session, project_id)
        for index, reason in loaded.bad.items():
            pool.set_aside(session, labelled[index].task_id, reason)
        rounds.trained(session, project, rounds.by_number(session, project, number), model)


def _fit(
    place: Workplace, project: Project, number: int, usable: Sequence[Example], images: np.ndarray
) -> Model | None:
    names = list(project.classes)
    labels = np.array([names.index(example.class_name) for example in usable], np.int64)
    weights = np.array([example.weight for example in usable], np.float32)
    sound = _train_until_sound(project, number, images, labels, weights)
    if sound is None:
        return None
    seed, trained = sound
    classifier = Classifier(
        trained.network, classes=names, version=versions.version(number), network_name=project.network
    )
    origin = checkpoint.Origin(seed=seed, round=number, training_set=_digest(usable), metrics=trained.metrics)
    checkpoint.save(versions.folder(place.settings, project, classifier.version), classifier, origin)
    log.info("project %s round %s: trained on %s examples, %s", project.id, number, len(usable), trained.metrics)
    return Model(version=classifier.version, examples=len(usable), metrics=dict(trained.metrics))


def _train_until_sound(
    project: Project, number: int, images: np.ndarray, labels: np.ndarray, weights: np.ndarray
) -> tuple[int, training.Trained] | None:
    """The first of several runs that does not diverge; None if all do, and the project keeps the model it has."""
    for attempt in range(TRIES):
        seed = int(np.random.SeedSequence([project.rng_seed, number, attempt]).generate_state(1)[0])
        try:
            return seed, training.train(
                images,
                labels,
                weights,
                network=project.network,
                classes=len(project.classes),
                seed=seed,
                on_progress=_report,
            )
        except training.Diverged as error:
            log.warning("project %s round %s, run %s of %s: %s", project.id, number, attempt + 1, TRIES, error)
    step.note("reason", f"all {TRIES} runs diverged; the last good model stays")
    return None


def _report(progress: training.Progress) -> None:
    step.note(
        "progress",
        {
            "epoch": progress.epoch,
            "of": progress.of,
            "loss": round(progress.loss, 4),
            "accuracy": round(progress.accuracy, 4),
            "seconds_left": round(progress.seconds_left, 1),
        },
    )


def _digest(usable: Sequence[Example]) -> str:
    lines = (f"{e.studio_id}\t{e.class_name}\t{e.weight!r}\n" for e in usable)
    return hashlib.sha256("".join(lines).encode()).hexdigest()
