"""What the home page tells of each project: what it waits for, how far it is, and what is wrong."""

from __future__ import annotations

from dataclasses import dataclass

from backend.dashboard.loop_picture import sentence
from backend.dashboard.words import ago
from jobs.status import JobStatus, ProjectStatus, QueueStatus, all_projects, queue_status
from jobs.workplace import Workplace
from store.tables import RoundState


@dataclass(frozen=True)
class Card:
    id: int
    title: str
    address: str | None
    """Of the project in Label Studio; None for a data set outside of it."""
    connected: bool
    doing: str
    labels: int | None
    """Of the open round; None where no labels are awaited."""
    wanted: int
    facts: list[tuple[str, str]]
    problems: dict[str, int]


@dataclass(frozen=True)
class Seen:
    cards: list[Card]
    queue: QueueStatus
    troubled: list[JobStatus]
    """Jobs that failed or wait for another try."""


def look(place: Workplace) -> Seen:
    queue = queue_status(place.redis)
    troubled = [job for job in queue.jobs if job.reason]
    return Seen([_card(project) for project in all_projects(place)], queue, troubled)


def _card(project: ProjectStatus) -> Card:
    last = project.rounds[-1] if project.rounds else None
    collecting = project.connected and last is not None and last.state == RoundState.OPEN
    return Card(
        id=project.id,
        title=project.title,
        address=f"{project.studio_url}/projects/{project.studio_id}/data" if project.root is None else None,
        connected=project.connected,
        doing=sentence(project),
        labels=last.labels if last and collecting else None,
        wanted=last.wanted if last else 0,
        facts=_facts(project),
        problems=project.problems,
    )


def _facts(project: ProjectStatus) -> list[tuple[str, str]]:
    facts = [("Tasks", f"{project.tasks:,}"), ("Without a label", f"{project.unlabelled:,}")]
    trained = [round_.model for round_ in project.rounds if round_.model]
    if trained:
        facts.append(("Model", f"{trained[-1].version}, from {trained[-1].examples:,} labels"))
    judged = [round_.accuracy for round_ in project.rounds if round_.accuracy]
    if judged:
        facts.append(("Right on the unlabelled", str(judged[-1])))
    facts += [(f"Subset {subset.name}", f"{subset.selected:,} of {subset.target:,}") for subset in project.subsets]
    if project.connected:
        facts.append(("Last compared", ago(project.reconciled_at)))
    return facts
