"""Jobs whose worker is gone: found by this process's own clock alone, and put back for another worker.

A worker gives a sign of life for its running job every few seconds: the number under which Redis lists the run changes.
A run whose number stands still while we look on for `SILENT_SECONDS` is over, whatever the clocks of the machines
involved say or are set to; so is a job that was taken from its queue and never begun.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

from redis.client import Pipeline
from rq import Queue
from rq.job import Job, JobStatus
from rq.registry import FailedJobRegistry, StartedJobRegistry

from jobs import queues

SILENT_SECONDS = 25.0
GAP_SECONDS = 25.0
"""Who has not looked for so long knows nothing: whoever should have given signs of life may have slept as well."""
MOST_TAKEOVERS = 10
"""A job whose worker vanished so often may well be why: it counts as failed."""
NEVER_BEGUN = -1.0


class Lookout:
    """Call `look` every few seconds, and `forget` when Redis was away: then no sign of life had a way to it either."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, tuple[float, float]]] = {}
        """By queue: each run's last sign of life, and since when we know it."""
        self._looked: dict[str, float] = {}

    def look(self, found: Queue) -> list[Job]:
        """Puts back the jobs of the queue that nobody works at any more, and returns them."""
        signs, moment = _signs(found), time.monotonic()
        before = self._seen.get(found.name, {})
        if moment - self._looked.get(found.name, moment) > GAP_SECONDS:
            before = {}
        self._looked[found.name] = moment
        seen: dict[str, tuple[float, float]] = {}
        for run, beat in signs.items():
            known, since = before.get(run, (beat, moment))
            seen[run] = (beat, since if known == beat else moment)
        self._seen[found.name] = seen
        silent = {run: beat for run, (beat, since) in seen.items() if moment - since >= SILENT_SECONDS}
        return [job for run, beat in silent.items() if (job := _take_over(found, run, beat))]

    def forget(self) -> None:
        self._seen = {}


def put_back(found: Queue, job_id: str, *, run: str | None = None, beat: float | None = None) -> Job | None:
    """Puts a job that nobody works at any more before those that wait, with the tries it has left, and returns it.
    `run` names the run of it that is over. If a `beat` is given, its worker has vanished without a word; should the run
    have given another sign of life since, all stays as it is."""
    redis, running = found.connection, StartedJobRegistry(queue=found).key

    def move(pipe: Pipeline) -> Job | None:
        if beat is not None and pipe.zscore(running, str(run)) != beat:
            return None
        job = queues.find(redis, job_id)
        if job is not None and _is_settled(found, job, run):
            job = None
        pipe.multi()
        pipe.lrem(found.intermediate_queue_key, 0, job_id)
        if run is not None:
            pipe.zrem(running, run)
            pipe.delete(f"rq:execution:{run}")
        if job is not None and (beat is None or _may_go_on(job)):
            found.enqueue_job(job, pipeline=pipe, at_front=True)
        elif job is not None:
            _fail(pipe, found, job)
        return job

    watched = (running, found.intermediate_queue_key, Job.key_for(job_id))
    job: Job | None = redis.transaction(move, *watched, value_from_callable=True)  # type: ignore[arg-type, assignment]
    return job


def _signs(found: Queue) -> dict[str, float]:
    """Of each run `job:run` its number; of a job that was taken but not begun, under its id, always the same one."""
    with found.connection.pipeline() as look:
        look.zrange(StartedJobRegistry(queue=found).key, 0, -1, withscores=True)
        look.lrange(found.intermediate_queue_key, 0, -1)
        runs, taken = look.execute()
    beats = {run.decode(): beat for run, beat in runs}
    begun = {run.partition(":")[0] for run in beats}
    return beats | {name.decode(): NEVER_BEGUN for name in taken if name.decode() not in begun}


def _take_over(found: Queue, run: str, beat: float) -> Job | None:
    if beat == NEVER_BEGUN:
        return put_back(found, run)
    return put_back(found, run.partition(":")[0], run=run, beat=beat)


def _is_settled(found: Queue, job: Job, run: str | None) -> bool:
    """Whether the job has ended all the same, or is waiting or running elsewhere."""
    ended = job.get_status(refresh=False) in queues.ENDED
    return ended or queues.is_somewhere(found, job.id, taken=False, besides=run)


def _may_go_on(job: Job) -> bool:
    job.meta["vanished"] = job.meta.get("vanished", 0) + 1
    job.meta["reason"] = "its worker vanished in the middle of it"
    return bool(job.meta["vanished"] <= MOST_TAKEOVERS)


def _fail(pipe: Pipeline, found: Queue, job: Job) -> None:
    job.ended_at = datetime.now(UTC)
    job.save(pipeline=pipe)
    job.set_status(JobStatus.FAILED, pipeline=pipe)
    failed = FailedJobRegistry(queue=found)
    failed.add(job, ttl=queues.FAILED_SECONDS, exc_string=job.meta["reason"], pipeline=pipe)
