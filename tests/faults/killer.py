"""Kills at random moments: every part of the backend, in every way it can fall, and Label Studio."""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.processes import Seen, writing_to

SHORTEST_GAP, LONGEST_GAP = 3.0, 45.0


@dataclass(frozen=True)
class Scene:
    """Where the logs lie, and with them the processes."""

    home: Path
    studio_log: Path

    def of(self, name: str) -> list[Seen]:
        log = self.studio_log if name == "label-studio" else self.home / "logs" / f"{name}.log"
        return writing_to(log)

    @property
    def everything(self) -> list[Seen]:
        names = ("up", "serve", "worker-gpu", "worker-studio", "redis", "label-studio")
        return [one for name in names for one in self.of(name)]


Victims = Callable[[Scene, random.Random], list[Seen]]
"""Whom to kill, all at once; nobody if this is not the moment."""


def _all_of(name: str) -> Victims:
    return lambda scene, chance: scene.of(name)


def _leader_of(name: str) -> Victims:
    return lambda scene, chance: [one for one in scene.of(name) if one.leads]


def _one_web_worker(scene: Scene, chance: random.Random) -> list[Seen]:
    workers = [one for one in scene.of("serve") if not one.leads]
    return [chance.choice(workers)] if workers else []


def _horse(scene: Scene, chance: random.Random) -> list[Seen]:
    return [one for one in scene.of("worker-gpu") if one.is_horse]


def _at_work(victims: Victims) -> Victims:
    """Only while the worker has a job in hand."""
    return lambda scene, chance: victims(scene, chance) if _horse(scene, chance) else []


KINDS: dict[str, Victims] = {
    "web: gunicorn's master": _leader_of("serve"),
    "web: one gunicorn worker": _one_web_worker,
    "web: all of it": _all_of("serve"),
    "training worker, not its work-horse": _at_work(_leader_of("worker-gpu")),
    "training's work-horse": _horse,
    "training worker with its work-horse": _at_work(_all_of("worker-gpu")),
    "publishing worker": _all_of("worker-studio"),
    "Redis": _all_of("redis"),
    "Redis and all its data": _all_of("redis"),
    "Label Studio": _all_of("label-studio"),
    "iwes up, not its children": _leader_of("up"),
    "everything at once": lambda scene, chance: scene.everything,
}


@dataclass
class Killer:
    scene: Scene
    wanted: int
    seed: int
    gap: float
    """Seconds between two kills, in the middle."""
    pace: Callable[[], float]
    """How much of the work is done, from 0 to 1: the kills are spread over all of it."""
    before: Callable[[list[Seen]], None] = lambda victims: None
    """Called with the victims the moment before."""
    after: Callable[[str], None] = lambda kind: None
    kills: Counter[str] = field(default_factory=Counter)
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311
        kinds = list(KINDS)
        self._random.shuffle(kinds)
        deck = [kind for turn in range(self.wanted // len(kinds) + 1) for kind in kinds][: self.wanted]
        self._random.shuffle(deck)
        self._deck = deck

    @property
    def done(self) -> int:
        return self.kills.total()

    def start(self) -> threading.Thread:
        thread = threading.Thread(target=self._work, name="killer", daemon=True)
        thread.start()
        return thread

    def _work(self) -> None:
        while self._deck and not self.stop.wait(self._gap()):
            for kind in self._deck:
                if self._kill(kind):
                    self._deck.remove(kind)
                    break

    def _gap(self) -> float:
        """Short while the kills lag behind the labels, long while they are ahead; never regular."""
        ahead = self.done / self.wanted - self.pace()
        middle = self.gap * (1 + 12 * ahead)
        return min(LONGEST_GAP, max(SHORTEST_GAP, middle)) * self._random.uniform(0.3, 1.7)

    def _kill(self, kind: str) -> bool:
        victims = KINDS[kind](self.scene, self._random)
        if not victims:
            return False
        self.before(victims)
        if kind == "Redis and all its data":
            # The files go first: Redis has them open and notices nothing, but its successor finds none.
            shutil.rmtree(self.scene.home / "redis", ignore_errors=True)
        for victim in victims:
            with suppress(ProcessLookupError):
                os.kill(victim.pid, signal.SIGKILL)
        self.kills[kind] += 1
        self.after(kind)
        return True
