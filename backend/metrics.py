"""/metrics for Prometheus: what the store and RQ hold now, and what web servers and workers have counted in Redis.

Every web server of an installation tells the same, for nothing is kept in the one that happens to be asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from math import inf

from flask import Blueprint, Response, current_app, request
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from backend.fresh import Fresh
from jobs.backlog import backlogs
from jobs.measures import JOB_BOUNDS, WEBHOOK_BOUNDS, Histogram, Measures, Tally
from jobs.workplace import Workplace
from store import counts, projects
from store.database import Store
from store.tables import Project

metrics = Blueprint("metrics", __name__)

JOBS = ("train", "draw", "publish", "fetch", "reconcile", "select", "review", "show")
"""Told from the start, with zeros: of a counter that only appears with its first failure, Prometheus sees no rise."""

FRESH_SECONDS = 5.0


@metrics.get("/metrics")
def scrape() -> Response:
    place: Workplace = current_app.extensions["workplace"]
    tally: Tally = current_app.extensions["tally"]
    tally.flush(place.redis)
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    registry = CollectorRegistry(auto_describe=False)
    registry.register(current_app.extensions["stock"])
    registry.register(_Happened(place.redis))
    return Response(encode(registry), content_type=content_type)


@dataclass(frozen=True)
class _Counted:
    """The store's figures, as they were at some moment."""

    projects: list[Project]
    tasks: list[counts.Tasks]
    labels: list[counts.Labels]
    rounds: list[counts.Rounds]
    models: list[counts.CurrentModel]

    @classmethod
    def read(cls, store: Store) -> _Counted:
        with store.snapshot() as session:
            connected = list(projects.connected(session))
            return cls(
                connected,
                counts.tasks(session),
                counts.labels(session),
                counts.rounds_by_state(session),
                counts.current_models(session, connected),
            )


class Stock(Collector):
    """What the store holds. Counted anew when it is asked for and the last count is old."""

    def __init__(self, store: Store) -> None:
        self._counted = Fresh(lambda: _Counted.read(store), seconds=FRESH_SECONDS)

    def collect(self) -> Iterator[Metric]:
        try:
            counted = self._counted.get()
        except (SQLAlchemyError, OSError):
            yield _gauge("iwes_store_up", "Whether the store answers.", [({}, 0)])
            return
        yield _gauge("iwes_store_up", "Whether the store answers.", [({}, 1)])
        yield from _of_projects(counted)


def _of_projects(counted: _Counted) -> Iterator[Metric]:
    connected = [({"project": str(project.id)}, project) for project in counted.projects]
    info = [(of | {"studio_project": str(project.studio_id), "title": project.title}, 1) for of, project in connected]
    yield _gauge("iwes_project_info", "A connected project.", info)
    compared = [(of, _seconds(project.reconciled_at)) for of, project in connected]
    yield _gauge("iwes_reconciled_timestamp_seconds", "When store and Label Studio were last compared.", compared)
    seen = [(of, _seconds(project.webhook_seen_at)) for of, project in connected]
    yield _gauge("iwes_webhook_seen_timestamp_seconds", "When the last webhook came.", seen)

    tasks = [({"project": str(row.project_id)}, row) for row in counted.tasks]
    yield _gauge("iwes_tasks", "Tasks in Label Studio.", [(of, row.there) for of, row in tasks])
    yield _gauge("iwes_tasks_set_aside", "Tasks that cannot be used.", [(of, row.set_aside) for of, row in tasks])

    labels = [
        ({"project": str(row.project_id), "provenance": provenance}, getattr(row, provenance))
        for row in counted.labels
        for provenance in ("asked", "manual", "imported")
    ]
    yield _gauge("iwes_labels", "Labels that can be learnt.", labels)
    skips = [({"project": str(row.project_id)}, row.skipped) for row in counted.labels]
    yield _gauge("iwes_skips", "Annotations that skip their task.", skips)

    rounds = [
        ({"project": str(row.project_id), "subset": row.subset, "state": row.state}, row.rounds)
        for row in counted.rounds
    ]
    yield _gauge("iwes_rounds", "Rounds, by where they stand.", rounds)

    models = [({"project": str(row.project_id)}, row) for row in counted.models]
    yield _gauge("iwes_model_info", "The model in use.", [(of | {"version": row.version}, 1) for of, row in models])
    yield _gauge("iwes_model_examples", "Labels it was trained on.", [(of, row.examples) for of, row in models])
    trained = [(of, _seconds(row.created_at)) for of, row in models]
    yield _gauge("iwes_model_trained_timestamp_seconds", "When it was trained.", trained)


class _Happened(Collector):
    """What RQ and `jobs.measures` hold in Redis."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def collect(self) -> Iterator[Metric]:
        try:
            found = [*self._queues(), *_measured(Measures.read(self._redis))]
        except (RedisError, OSError):
            found = []
        yield _gauge("iwes_redis_up", "Whether Redis answers.", [({}, 1 if found else 0)])
        yield from found

    def _queues(self) -> Iterator[Metric]:
        queues = backlogs(self._redis)
        jobs = [
            ({"queue": name, "state": state}, getattr(backlog, state))
            for name, backlog in queues.items()
            for state in ("waiting", "started", "scheduled", "failed")
        ]
        yield _gauge("iwes_queue_jobs", "Jobs in a queue, by state.", jobs)
        alive = [({"queue": name}, backlog.workers) for name, backlog in queues.items()]
        yield _gauge("iwes_workers", "Workers alive that serve a queue.", alive)


def _measured(measures: Measures) -> Iterator[Metric]:
    runs = dict.fromkeys(product(JOBS, ("finished", "failed", "retried", "killed")), 0) | measures.counts("jobs")
    jobs = CounterMetricFamily("iwes_jobs", "Runs of jobs.", labels=["kind", "outcome"])
    for (kind, outcome), number in runs.items():
        jobs.add_metric([str(kind), str(outcome)], number)
    repairs = CounterMetricFamily("iwes_reconcile_repairs", "What reconcile repaired.", labels=["project", "kind"])
    for (project, kind), number in measures.counts("repairs").items():
        repairs.add_metric([str(project), str(kind)], number)
    yield from (jobs, repairs)
    yield _histogram(
        "iwes_job_seconds", "How long runs of jobs took.", "kind", measures.histograms("job_seconds", JOB_BOUNDS, JOBS)
    )
    yield _histogram(
        "iwes_webhook_seconds",
        "How long webhooks took to answer.",
        "outcome",
        measures.histograms("webhook_seconds", WEBHOOK_BOUNDS, ("taken", "refused", "failed")),
    )


def _gauge(name: str, meaning: str, samples: Iterable[tuple[dict[str, str], float]]) -> Metric:
    family = GaugeMetricFamily(name, meaning)
    for labels, value in samples:
        family.add_sample(name, labels, value)
    return family


def _histogram(name: str, meaning: str, label: str, groups: dict[str, Histogram]) -> Metric:
    family = HistogramMetricFamily(name, meaning, labels=[label])
    for group, histogram in groups.items():
        buckets = [(_bound(bound), number) for bound, number in histogram.buckets]
        family.add_metric([group], buckets, histogram.sum)
    return family


def _seconds(moment: datetime | None) -> float:
    """0 for never: then it is as old as can be."""
    return moment.timestamp() if moment else 0.0


def _bound(seconds: float) -> str:
    return "+Inf" if seconds == inf else str(seconds)
