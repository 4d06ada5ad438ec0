"""The last lines that a job wrote to the log, kept in Redis: they can be read wherever the job ran."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from redis import Redis
from redis.exceptions import RedisError

from jobs.logs import Text

KEPT_LINES = 200
KEPT_SECONDS = 7 * 24 * 3600
LONGEST = 4_000
"""Signs of one line: a traceback is one, with all its lines."""


@contextmanager
def kept(redis: Redis, job_id: str | None) -> Iterator[None]:
    """What is logged until the end of this block, and the error that ends it. Lines of an earlier try stay before them.
    Outside of a job nothing is kept."""
    if job_id is None:
        yield
        return
    handler = _Keeper(redis, job_id)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    except Exception as error:
        why = type(error), error, error.__traceback__
        said = logging.LogRecord(__name__, logging.ERROR, __file__, 0, "this try failed", None, why)
        handler.handle(said)
        raise
    finally:
        root.removeHandler(handler)


def lines(redis: Redis, job_id: str) -> list[str]:
    """The oldest first. Raises RedisError or OSError."""
    found: list[bytes] = redis.lrange(_key(job_id), 0, -1)  # type: ignore[assignment]
    return [line.decode() for line in found]


class _Keeper(logging.Handler):
    def __init__(self, redis: Redis, job_id: str) -> None:
        super().__init__(logging.INFO)
        self._redis = redis
        self._key = _key(job_id)
        self.setFormatter(Text())

    def emit(self, record: logging.LogRecord) -> None:
        """A line is never worth the work it is about: a Redis that is away costs the line."""
        try:
            with self._redis.pipeline() as pipe:
                pipe.rpush(self._key, self.format(record)[:LONGEST])
                pipe.ltrim(self._key, -KEPT_LINES, -1)
                pipe.expire(self._key, KEPT_SECONDS)
                pipe.execute()
        except (RedisError, OSError):
            pass


def _key(job_id: str) -> str:
    return f"iwes:log:{job_id}"
