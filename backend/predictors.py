"""The current predictor of each project, kept warm in the web server."""

from __future__ import annotations

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
        threading.Thread(target=_import_torch, name="warm-up", daemon=True).start()

    def of(self, project: Project, version: str) -> IWeS:
        kept = self._kept.get(project.id)
        if kept is not None and kept.model_version == version:
            return kept
        if not self._loading.acquire(blocking=kept is None) and kept is not None:
            return kept  # somebody else is loading the new version
        try:
            kept = self._kept.get(project.id)
            if kept is not None and (kept.model_version == version or self._rests(project)):
                return kept
            return self._replace(project, version, kept)
        finally:
            self._loading.release()

    def _replace(self, project: Project, version: str, kept: IWeS | None) -> IWeS:
        """A version that cannot be loaded leaves the last one answering, and is tried again later."""
        from models.card import BadCheckpoint

        try:
            self._kept[project.id] = self._load(project, version)
        except BadCheckpoint:
            if kept is None:
                raise
            log.exception("project %s: %s cannot be loaded; %s goes on", project.id, version, kept.model_version)
            self._failed_at[project.id] = time.monotonic()
        return self._kept[project.id]

    def _rests(self, project: Project) -> bool:
        return time.monotonic() - self._failed_at.get(project.id, -math.inf) < REST_SECONDS

    def _load(self, project: Project, version: str) -> IWeS:
        _import_torch()
        from backend.predictor import IWeS

        if version == UNTRAINED:
            return IWeS(self._place, project, None)
        classifier = self._checkpoint(project, version)
        return IWeS(self._place, project, classifier, self._twin(project, version))

    def _checkpoint(self, project: Project, version: str) -> Classifier:
        from models import checkpoint

        return checkpoint.load(folder(self._place.settings, project, version), self._place.workshop)

    def _twin(self, project: Project, version: str) -> Classifier | None:
        """The g trained beside this model, if there is one and it can be loaded: only reviewers would miss it."""
        from models.card import BadCheckpoint

        with self._place.store.read() as session:
            twin = rounds.twin_of(session, project, version)
        try:
            return self._checkpoint(project, twin.version) if twin else None
        except BadCheckpoint as error:
            log.warning("project %s: %s has no g beside it: %s", project.id, version, error)
            return None


def _import_torch() -> None:
    import torch

    import backend.predictor  # noqa: F401 - for its import alone

    torch.set_num_threads(1)  # predictions must leave the processor to the webhooks
