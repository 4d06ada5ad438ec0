"""Where the loop stands, as a picture: four stations that a round goes through, and how far it is in this one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from backend.dashboard.words import span
from jobs.status import JobStatus, ProjectStatus, RoundStatus
from store.drawn import Left
from store.tables import RoundState, now

DONE, NOW, NEXT = "done", "now", "next"
PACE_LABELS = 10
"""From so many labels, made lately, it is told how long the others will take."""
PACE_SECONDS = 3600.0


@dataclass(frozen=True)
class Station:
    name: str
    state: str
    share: float
    """Of its ring that is filled, from 0 to 1."""
    figure: str
    detail: str

    @property
    def spoken(self) -> str:
        state = {DONE: "done", NOW: "now", NEXT: "still to come"}[self.state]
        return f"{self.name}, {state}: {self.figure} {self.detail}".strip()


@dataclass(frozen=True)
class LoopPicture:
    sentence: str
    stations: list[Station]
    waiting: int
    """Jobs of this project that wait for a worker."""


def picture(
    project: ProjectStatus, left: Left | None, jobs: Sequence[JobStatus], labelled_at: Sequence[datetime]
) -> LoopPicture:
    """`jobs` are those of this project; `labelled_at` are the moments of its newest labels."""
    last = project.rounds[-1] if project.rounds else None
    at = _station_of(project, last)
    stations = [
        _labels(last, left, labelled_at, at),
        _training(project, last, jobs, at),
        _drawing(project, last, jobs, at),
        _publishing(last, jobs, at),
    ]
    return LoopPicture(sentence(project), stations, sum(job.state == "waiting" for job in jobs))


def _station_of(project: ProjectStatus, last: RoundStatus | None) -> int | None:
    """The number of the station the project is at; None where it is at none."""
    if not project.connected:
        return None
    if last is None:
        return 2 if project.unlabelled else None
    if last.state == RoundState.TRAINED:
        return 2 if project.unlabelled else None
    return {RoundState.OPEN: 0, RoundState.CLOSED: 1, RoundState.DRAWN: 3}[last.state]


def _state(station: int, at: int | None) -> str:
    if at is None:
        return NEXT
    return NOW if station == at else DONE if station < at else NEXT


def _labels(last: RoundStatus | None, left: Left | None, labelled_at: Sequence[datetime], at: int | None) -> Station:
    labels, wanted = (last.labels, last.wanted) if last and last.state != RoundState.DRAWN else (0, 0)
    state = _state(0, at)
    detail = ""
    if state == NOW:
        pace = seconds_per_label(labelled_at)
        missing = max(0, wanted - labels)
        detail = f"about {span(pace * missing)} left" if pace and missing else f"{missing} to go"
    elif left and at in (1, 2) and left.reserve_drawn:
        detail = f"{left.reserve} of {left.reserve_drawn} in reserve"
    share = min(1.0, labels / wanted) if wanted else 0.0
    figure = f"{labels} of {wanted}" if labels <= wanted else f"{wanted} + {labels - wanted}"
    return Station("Labels", state, 1.0 if state == DONE else share, figure if wanted else "–", detail)


def _training(project: ProjectStatus, last: RoundStatus | None, jobs: Sequence[JobStatus], at: int | None) -> Station:
    state = _state(1, at)
    if state != NOW or last is None:
        models = [round_.model for round_ in project.rounds if round_.model]
        figure = models[-1].version if models else "–"
        detail = f"from {models[-1].examples:,} labels" if models else "no model yet"
        return Station("Training", state, 1.0 if state == DONE else 0.0, figure, detail)
    job = _job(jobs, f"project-{project.id}-round-{last.number}-train")
    told = job.progress if job and job.state == "running" else None
    if told and "epoch" in told:
        share = told["epoch"] / max(1, told["of"])
        return Station("Training", NOW, share, f"{share:.0%}", f"at most {span(told['seconds_left'])} left")
    if told and "described" in told:
        share = told["described"] / max(1, told["of"])
        return Station("Training", NOW, share, f"{share:.0%}", f"describing {told['of']:,} images")
    if job and job.reason:
        return Station("Training", NOW, 0.0, "failed", f"{job.state}; see Jobs")
    if job is None or job.state == "waiting":
        return Station("Training", NOW, 0.0, "waits", "for a worker")
    return Station("Training", NOW, 0.0, "begins", f"from {last.labels:,} more labels")


def _drawing(project: ProjectStatus, last: RoundStatus | None, jobs: Sequence[JobStatus], at: int | None) -> Station:
    state = _state(2, at)
    detail = f"from {project.unlabelled:,} unlabelled"
    if state == NOW:
        job = _job(jobs, f"project-{project.id}-round-{last.number + 1 if last else 0}-draw")
        told = job.progress if job and job.state == "running" else None
        if told and "scored" in told:
            share = told["scored"] / max(1, told["of"])
            return Station("Draw", NOW, share, f"{told['scored']:,} asked", detail)
        return Station("Draw", NOW, 0.0, "running", detail)
    return Station("Draw", state, 1.0 if state == DONE else 0.0, f"{last.drawn} tasks" if last else "–", detail)


def _publishing(last: RoundStatus | None, jobs: Sequence[JobStatus], at: int | None) -> Station:
    state = _state(3, at)
    if state != NOW or last is None:
        return Station("Publish", state, 0.0, "to Label Studio", "")
    running = next((job for job in jobs if job.id.endswith(f"round-{last.number}-publish")), None)
    told = running.progress if running else None
    share = told["written"] / max(1, told["of"]) if told and "written" in told else 0.0
    return Station("Publish", NOW, share, f"{last.drawn} tasks", "with their weights")


def seconds_per_label(labelled_at: Sequence[datetime]) -> float | None:
    """At the pace of the newest labels; None where there are too few of them to tell."""
    moment = now()
    lately = sorted(at for at in labelled_at if 0 <= (moment - at).total_seconds() < PACE_SECONDS)
    if len(lately) < PACE_LABELS:
        return None
    return max(0.0, (moment - lately[0]).total_seconds()) / len(lately)


def _job(jobs: Sequence[JobStatus], job_id: str) -> JobStatus | None:
    return next((job for job in jobs if job.id == job_id and job.state != "finished"), None)


def sentence(project: ProjectStatus) -> str:
    """What the project is doing."""
    last = project.rounds[-1] if project.rounds else None
    if project.root is not None:
        return "A data set outside of Label Studio"
    if not project.connected:
        return "Disconnected; labels and weights are kept"
    if last is None:
        return "The first tasks are being drawn" if project.unlabelled else "Nothing to ask annotators for yet"
    if last.state == RoundState.TRAINED:
        return "The next tasks are being drawn" if project.unlabelled else "Every task has a label"
    doing = {
        RoundState.DRAWN: "its tasks are being published",
        RoundState.OPEN: "collecting labels",
        RoundState.CLOSED: "a model trains on its labels",
    }
    return f"Round {last.number}: {doing[last.state]}"
