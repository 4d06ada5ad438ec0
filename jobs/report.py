"""Tells how far a training is, to `iwes status` and to the log."""

from __future__ import annotations

import logging
import time

from jobs import step
from models.learner import Progress

log = logging.getLogger(__name__)

LOG_SECONDS = 5.0


class Report:
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


def describing(done: int, of: int) -> None:
    step.note("progress", {"described": done, "of": of})
    log.info("described %s of %s images", done, of)
