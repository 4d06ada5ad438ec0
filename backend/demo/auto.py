"""`make demo ANNOTATOR=auto`: a scripted annotator labels round after round until those asked for are done."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from backend.demo.annotator import Annotator
from backend.demo.screen import Screen
from backend.demo.watch import Situation
from jobs import versions
from jobs.workplace import Workplace
from store.tables import Project, RoundState

POLL_SECONDS = 0.3
STALL_SECONDS = 180.0

Judge = Callable[[Path], float]
"""The accuracy of the model whose checkpoint lies in a folder."""


class LoopStalled(RuntimeError):
    """The loop does not go on; the message says where it stands."""


class AutoRun:
    """Watches the loop while an annotator labels; the last round asked for is done when the next one is queued."""

    def __init__(self, place: Workplace, project: Project, annotator: Annotator, judge: Judge) -> None:
        self._place = place
        self._project = project
        self._annotator = annotator
        self._judge = judge
        self.accuracies: dict[int, float] = {}
        self._seen: tuple[object, ...] = ()
        self._moved_at = time.monotonic()

    def follow(self, rounds: int, look: Callable[[], Situation], screen: Screen, supervise: Callable[[], None]) -> None:
        now = look()
        last = (now.finished[-1].number if now.finished else 0) + rounds
        stop = threading.Event()
        thread = self._annotator.run_in_thread(stop)
        try:
            while not _done(now, last):
                supervise()
                now = look()
                if now.finished and now.finished[-1].number >= last:
                    stop.set()
                self._judge_models(now)
                screen.show(now, self.accuracies)
                self._require_progress(now)
                time.sleep(POLL_SECONDS)
        finally:
            stop.set()
            thread.join(timeout=10)

    def _judge_models(self, now: Situation) -> None:
        """The accuracy of each new model."""
        for round_ in now.finished:
            if round_.number not in self.accuracies and round_.model_version is not None:
                folder = versions.folder(self._place.settings, self._project, round_.model_version)
                self.accuracies[round_.number] = self._judge(folder)

    def _require_progress(self, now: Situation) -> None:
        if self._annotator.failure is not None:
            raise LoopStalled(f"the annotator was refused: {self._annotator.failure}")
        if now.failed:
            raise LoopStalled(f"the job {now.due} failed: {now.failed}")
        seen = (now.number, now.state, now.labels, now.progress)
        if seen != self._seen:
            self._seen, self._moved_at = seen, time.monotonic()
        elif time.monotonic() - self._moved_at > STALL_SECONDS:
            waits_for = f"the job {now.due} ({now.job})" if now.due else f"labels ({now.labels} of {now.wanted})"
            raise LoopStalled(f"nothing has moved for {STALL_SECONDS:.0f} s: round {now.number} waits for {waits_for}")


def _done(now: Situation, last: int) -> bool:
    return now.at_the_end or (now.number > last and now.state == RoundState.OPEN)
