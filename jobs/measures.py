"""What happened, counted for /metrics: in one hash in Redis, which web servers and workers of every host add to.

A figure is never worth the work it is about: a Redis that is away costs the figure, and nothing here raises. A Redis
that was emptied begins again at zero, which Prometheus takes for a restart.
"""

from __future__ import annotations

import json
import logging
import threading
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf

from redis import Redis
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

KEY = "iwes:measures"

JOB_BOUNDS = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0, inf)
WEBHOOK_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, inf)
"""In seconds. Label Studio gives a webhook 1 s."""

FLUSH_SECONDS = 2.0
MOST_WAITING = 100_000

Name = tuple[str | int, ...]
"""The measure, then what tells its figures apart."""


def count_repairs(redis: Redis, project_id: int, repairs: Mapping[str, int]) -> None:
    """What a reconcile of the project has repaired, by kind."""
    _add(redis, {("repairs", project_id, kind): count for kind, count in repairs.items() if count})


def count_job(redis: Redis, kind: str, outcome: str, seconds: float | None = None) -> None:
    """One run of a job: it `finished`, `failed` for good, is to be `retried`, or its process was `killed`, which leaves
    nobody to tell how long it took."""
    sums: Counter[Name] = Counter({("jobs", kind, outcome): 1})
    if seconds is not None:
        _observe(sums, "job_seconds", kind, seconds, JOB_BOUNDS)
    _add(redis, sums)


class Tally:
    """Webhooks that this process answered, on their way to Redis. Noting one costs an append: no lock is taken and
    nothing is sent before the next flush, so a process that is killed loses the last seconds' figures."""

    def __init__(self) -> None:
        self._seen: deque[tuple[str, float]] = deque(maxlen=MOST_WAITING)
        self._sums: Counter[Name] = Counter()
        self._flushing = threading.Lock()

    def webhook(self, outcome: str, seconds: float) -> None:
        self._seen.append((outcome, seconds))

    def flush(self, redis: Redis) -> None:
        """What a Redis that is away does not take is kept for later; what it was sent without an answer is given up,
        lest it be counted twice."""
        with self._flushing:
            for _ in range(len(self._seen)):
                _observe(self._sums, "webhook_seconds", *self._seen.popleft(), WEBHOOK_BOUNDS)
            if self._sums and _answers(redis):
                _add(redis, self._sums)
                self._sums.clear()

    def flush_forever(self, redis: Redis) -> None:
        threading.Thread(target=self._flush_forever, args=(redis,), name="tally", daemon=True).start()

    def _flush_forever(self, redis: Redis) -> None:
        wait = threading.Event()
        while not wait.wait(FLUSH_SECONDS):
            self.flush(redis)


@dataclass(frozen=True)
class Histogram:
    buckets: list[tuple[float, int]]
    """Upper bounds, and how many were at most as long."""
    sum: float


class Measures:
    """All that was counted so far."""

    def __init__(self, sums: Mapping[Name, float]) -> None:
        self._sums = sums

    @classmethod
    def read(cls, redis: Redis) -> Measures:
        """Raises RedisError or OSError."""
        held: dict[bytes, bytes] = redis.hgetall(KEY)  # type: ignore[assignment]
        return cls({tuple(json.loads(name)): float(amount) for name, amount in held.items()})

    def counts(self, measure: str) -> dict[Name, int]:
        return {name[1:]: int(amount) for name, amount in self._sums.items() if name[0] == measure}

    def histograms(self, measure: str, bounds: Sequence[float], groups: Sequence[str] = ()) -> dict[str, Histogram]:
        """By group, those named in any case. Bounds of an earlier release, which a Redis may still hold, are kept."""
        counted = {group: Counter(dict.fromkeys(bounds, 0)) for group in groups}
        sums: Counter[str] = Counter()
        for (name, *rest), amount in self._sums.items():
            if name == measure and rest[1] == "sum":
                sums[str(rest[0])] += amount  # type: ignore[assignment]
            elif name == measure:
                counted.setdefault(str(rest[0]), Counter(dict.fromkeys(bounds, 0)))[float(rest[1])] += int(amount)
        return {group: _histogram(found, float(sums[group])) for group, found in counted.items()}


def _histogram(found: Counter[float], total: float) -> Histogram:
    bounds = sorted(found)
    return Histogram(list(zip(bounds, accumulate(found[bound] for bound in bounds), strict=True)), total)


def _observe(sums: Counter[Name], measure: str, group: str, seconds: float, bounds: Sequence[float]) -> None:
    sums[measure, group, str(bounds[bisect_left(bounds, seconds)])] += 1
    sums[measure, group, "sum"] += seconds  # type: ignore[assignment]


def _answers(redis: Redis) -> bool:
    try:
        return bool(redis.ping())
    except (RedisError, OSError):
        return False


def _add(redis: Redis, sums: Mapping[Name, float]) -> None:
    try:
        with redis.pipeline() as pipe:
            for name, amount in sums.items():
                if isinstance(amount, int):
                    pipe.hincrby(KEY, json.dumps(name), amount)
                else:
                    pipe.hincrbyfloat(KEY, json.dumps(name), amount)
            pipe.execute()
    except (RedisError, OSError) as error:
        log.debug("not counted, Redis is away: %s", error)
