"""How long a training whose process was killed waits for another one to take it over."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import datetime

from redis import Redis
from redis.exceptions import RedisError
from rq.job import JobStatus

from jobs import queues
from jobs.workplace import Workplace
from store import projects, rounds
from store.tables import RoundState, now

LOOK_SECONDS = 0.25


@dataclass
class Takeovers:
    """Watches from outside. The clock starts again if the worker or Redis is killed once more meanwhile: what is
    promised is the time after the last blow."""

    place: Workplace
    project_id: int
    seconds: list[float] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._pending: tuple[int, datetime] | None = None
        self._lock = threading.Lock()
        self._redis = Redis.from_url(self.place.settings.redis_url, socket_timeout=1, socket_connect_timeout=1)

    def start(self) -> threading.Thread:
        thread = threading.Thread(target=self._watch, name="takeovers", daemon=True)
        thread.start()
        return thread

    def trainer_killed(self) -> None:
        """Call right before; whatever trains now is to be taken over."""
        number = self._training()
        with self._lock:
            if number is not None:
                self._pending = (number, now())
            elif self._pending is not None:
                self._pending = (self._pending[0], now())

    def redis_killed(self) -> None:
        with self._lock:
            if self._pending is not None:
                self._pending = (self._pending[0], now())

    @property
    def waiting(self) -> float | None:
        """Seconds that a training has been waiting for by now."""
        pending = self._pending
        return (now() - pending[1]).total_seconds() if pending else None

    def _watch(self) -> None:
        while not self.stop.wait(LOOK_SECONDS):
            with self._lock:
                pending = self._pending
            if pending is not None and self._taken_over(*pending):
                with self._lock:
                    if self._pending == pending:
                        self.seconds.append((now() - pending[1]).total_seconds())
                        self._pending = None

    def _taken_over(self, number: int, since: datetime) -> bool:
        if self._closed() != number:
            return True  # already trained
        job = self._job(number)
        return job is not None and job[0] == JobStatus.STARTED and job[1] is not None and job[1] > since

    def _training(self) -> int | None:
        number = self._closed()
        job = self._job(number) if number is not None else None
        return number if job is not None and job[0] == JobStatus.STARTED else None

    def _closed(self) -> int | None:
        """The number of the round that waits for its training."""
        with self.place.store.read() as session:
            last = rounds.latest(session, projects.by_id(session, self.project_id))
        return last.number if last is not None and last.state == RoundState.CLOSED else None

    def _job(self, number: int) -> tuple[JobStatus | None, datetime | None] | None:
        try:
            job = queues.find(self._redis, f"project-{self.project_id}-round-{number}-train")
            return (job.get_status(refresh=False), job.started_at) if job else None
        except (RedisError, OSError):
            return None
