"""`iwes status`: what every project, job and worker is doing."""

from __future__ import annotations

from backend.cli.command import JSON, command
from backend.cli.output import console_beside, finish


@command("status", example="iwes status --json")
@JSON
def status(as_json: bool) -> None:
    """Show rounds, labels until the next training, estimates, jobs, workers and the last reconcile."""
    from backend.cli.place import opened
    from backend.status_page import show
    from jobs.status import all_projects, queue_status

    with opened() as place:
        projects, queue = all_projects(place), queue_status(place.redis)
    if not as_json:
        show(projects, queue, console_beside(as_json))
    finish(as_json, {"projects": projects, "queue": queue})
