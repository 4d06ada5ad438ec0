"""The current predictor of each project, kept warm in the web server."""

from __future__ import annotations

import gc
import logging
import math
import threading
import time
from typing import TYPE_CHECKING

from jobs.versions import UNTRAINED, folder
from jobs.workplace import Workplace
from store import rounds
from store.tables import Project

if TYPE_CHECKING:
    from backend.predictor import IWeS
    from models.classifier import Classifier


log = logging.getLogger(__name__)

REST_SECONDS = 60.0


class Predictors:
    """A new version is loaded beside the old one, which goes on answering until the new one is ready. torch comes in
    with the first predictor, so that a web server that only takes labels in is up at once."""

    def __init__(self, place: Workplace) -> None:
        self._place = place
        self._kept: dict[int, IWeS] = {}
        self._failed_at: dict[int, float] = {}
        self._loading = threading.Lock()

    def warm_up(self) -> None:
        """Imports torch in the background, so that the first prediction does not have to wait for it."""
        threading.Thread(target=_warm_up, name="warm-up", daemon=True).start()

    def of(self, project: Project, version: str) -> IWeS:
        """The predictor of this version, with the g that may have been trained beside it by now."""
        with self._place.store.read() as session:
            g = rounds.twin_of(session, project, version)
        versions = version, g.version if g else None
        kept = self._kept.get(project.id)
        if kept is not None and kept.versions == versions:
            return kept
        if not self._loading.acquire(blocking=kept is None) and kept is not None:
            return kept  # somebody else is loading the new version
        try:
            kept = self._kept.get(project.id)
            if kept is not None and (kept.versions == versions or self._rests(project)):
                return kept
            return self._replace(project, *versions, kept)
        finally:
            self._loading.release()

    def _replace(self, project: Project, version: str, twin: str | None, kept: IWeS | None) -> IWeS:
        """A version that cannot be loaded leaves the last one answering, and is tried again later."""
        from models.card import BadCheckpoint

        try:
            self._kept[project.id] = self._load(project, version, twin)
        except BadCheckpoint:
            if kept is None:
                raise
            log.exception("project %s: %s cannot be loaded; %s goes on", project.id, version, kept.model_version)
            self._failed_at[project.id] = time.monotonic()
        return self._kept[project.id]

    def _rests(self, project: Project) -> bool:
        return time.monotonic() - self._failed_at.get(project.id, -math.inf) < REST_SECONDS

    def _load(self, project: Project, version: str, twin: str | None) -> IWeS:
        _import_torch()
        from backend.predictor import IWeS

        if version == UNTRAINED:
            return IWeS(self._place, project, None)
        return IWeS(self._place, project, self._checkpoint(project, version), self._twin(project, twin))

    def _checkpoint(self, project: Project, version: str) -> Classifier:
        from models import checkpoint

        return checkpoint.load(folder(self._place.settings, project, version), self._place.workshop)

    def _twin(self, project: Project, version: str | None) -> Classifier | None:
        """Where it cannot be loaded only reviewers will miss it, until it is tried again."""
        from models.card import BadCheckpoint

        try:
            return self._checkpoint(project, version) if version else None
        except BadCheckpoint as error:
            log.warning("project %s: %s cannot be loaded: %s", project.id, version, error)
            self._failed_at[project.id] = time.monotonic()
            return None


def _warm_up() -> None:
    """What was imported stays for good. Left to Python's collector, each of its full rounds would look through all of
    it again, and hold up every webhook for a third of a second."""
    _import_torch()
    gc.collect()
    gc.freeze()


def _import_torch() -> None:
    import torch

    import backend.predictor  # noqa: F401 - for its import alone

    torch.set_num_threads(1)  # predictions must leave the processor to the webhooks
