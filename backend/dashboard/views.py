"""What each page of a project shows, read off the store and the queue."""

from __future__ import annotations

from dataclasses import dataclass

from backend.dashboard import figures, next_tasks
from backend.dashboard.loop_picture import LoopPicture, picture
from jobs.status import (
    JobStatus,
    ProjectStatus,
    QueueStatus,
    SubsetStatus,
    project_status,
    queue_status,
    subset_status,
)
from jobs.workplace import Workplace
from store import counts, drawn, pool, projects
from store import subsets as store_subsets

FINISHED_JOBS = 30
PACE = 40


@dataclass(frozen=True)
class Overview:
    status: ProjectStatus
    loop: LoopPicture
    left: drawn.Left | None
    queue: QueueStatus
    troubled: list[JobStatus]
    curve: figures.Curve | None
    balance: list[figures.Bar]
    weights: figures.WeightPlot | None


@dataclass(frozen=True)
class NextTasks:
    queue: next_tasks.Queue | None
    second_look: list[next_tasks.Doubted]


@dataclass(frozen=True)
class Jobs:
    queue: QueueStatus
    jobs: list[JobStatus]
    """Of this project alone."""


@dataclass(frozen=True)
class Subsets:
    subsets: list[SubsetStatus]
    jobs: list[JobStatus]
    came_labelled: int


def overview(place: Workplace, project_id: int) -> Overview:
    seen = queue_status(place.redis)
    with place.store.read() as session:
        project = projects.by_id(session, project_id)
        status = project_status(session, project)
        round_ = drawn.surfaced(session, project)
        left = drawn.left(session, round_) if round_ else None
        moments = counts.last_labelled(session, project, PACE)
        weights = drawn.weights(session, project)
    mine = of_project(seen, project_id)
    return Overview(
        status=status,
        loop=picture(status, left, mine, moments),
        left=left,
        queue=seen,
        troubled=[job for job in mine if job.reason],
        curve=figures.curve(status.estimates.curve),
        balance=figures.balance(status.estimates.balance),
        weights=figures.weight_plot(weights, project.cap),
    )


def tasks(place: Workplace, project_id: int) -> NextTasks:
    with place.store.read() as session:
        project = projects.by_id(session, project_id)
        return NextTasks(next_tasks.queue(session, project), next_tasks.second_look(session, project))


def jobs(place: Workplace, project_id: int) -> Jobs:
    """What happened last comes first; before all, what runs or waits."""
    seen = queue_status(place.redis, finished=FINISHED_JOBS)
    mine = of_project(seen, project_id)
    order = {"running": 0, "waiting": 1, "to be retried": 2}
    mine.sort(key=lambda job: job.ended.timestamp() if job.ended else 0.0, reverse=True)
    mine.sort(key=lambda job: order.get(job.state, 3))
    return Jobs(seen, mine)


def subsets(place: Workplace, project_id: int) -> Subsets:
    seen = queue_status(place.redis)
    with place.store.read() as session:
        project = projects.by_id(session, project_id)
        found = [subset_status(session, project, subset) for subset in store_subsets.all_of(session, project)]
        came = pool.came_labelled(session, project)
    return Subsets(found, of_project(seen, project_id), came)


def of_project(seen: QueueStatus, project_id: int) -> list[JobStatus]:
    return [job for job in seen.jobs if job.id.startswith(f"project-{project_id}-")]
