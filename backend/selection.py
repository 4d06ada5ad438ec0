"""`iwes select` for a terminal: asks for a subset, and shows how the selection goes until it is complete."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from backend.status_page import progress_words
from jobs.loop import advance
from jobs.status import SubsetGlance, SubsetStatus, queue_status, subset_glance, subset_status
from jobs.workplace import Workplace
from store import projects, subsets
from store.tables import Mode, Project, Subset

LOOK_SECONDS = 0.5
SPEED_SECONDS = 24 * 3600
"""Over which the time left is reckoned: tasks come in rounds, and one may take hours."""


def ask(place: Workplace, project_id: int, *, size: int, rule: str, name: str, **chances: float | int | None) -> Subset:
    """Puts the wish into the store, from where any worker takes it up. Raises BadSubset."""
    with place.store.write() as session:
        project = projects.lock(session, project_id)
        if project.root is not None:
            raise subsets.BadSubset("images outside of Label Studio are selected by `iwes select --images`")
        if not project.connected:
            raise subsets.BadSubset("the project is disconnected; connect it again first")
        if project.mode == Mode.ENT:
            raise subsets.BadSubset("mode ent selects no subsets: change it first with `iwes set --mode auto`")
        subset = subsets.ask(session, project, name=name, rule=rule, size=size, **chances)  # type: ignore[arg-type]
    advance(place, project_id, even_if_failed=True)
    return subset


def watch(place: Workplace, project: Project, subset: Subset, console: Console) -> SubsetStatus:
    """Until the subset is complete and shown in Label Studio. Whoever stops watching stops nothing else."""
    with bar(console, subset.name) as told:
        while True:
            with place.store.read() as session:
                stored, mine = projects.by_id(session, project.id), subsets.by_id(session, subset.id)
                seen = subset_glance(session, stored, mine)
                if not seen.state:
                    return subset_status(session, stored, mine)
            told(seen, _job_words(place, project, subset))
            time.sleep(LOOK_SECONDS)


class _Progress(Progress):
    """With what is being done below the bar: many a terminal has no room for it beside."""

    def get_renderables(self) -> Iterator[RenderableType]:
        yield from super().get_renderables()
        for task in self.tasks:
            yield Text(task.fields["doing"], no_wrap=True, overflow="ellipsis")


@contextmanager
def bar(console: Console, name: str) -> Iterator[Callable[[SubsetGlance, str], None]]:
    columns = (
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with _Progress(*columns, console=console, transient=True, speed_estimate_period=SPEED_SECONDS) as shown:
        task = shown.add_task(f"subset {escape(name)}", total=None, doing="")

        def told(found: SubsetGlance, words: str) -> None:
            which = "" if found.round is None else f"round {found.round}, "
            doing = f"{which}{found.state}{f': {words}' if words else ''}" if found.state else ""
            shown.update(task, total=found.target, completed=found.selected, doing=doing)

        yield told


def summary(found: SubsetStatus) -> str:
    return (
        f"subset {found.name}: {found.selected} tasks by IWeS-{found.rule} in {len(found.rounds)} rounds, worth "
        f"{found.effective_size:.0f} equally weighted labels; {found.share_capped:.0%} of the drawn weights are at "
        f"their cap; {found.doubts} labels are worth a second look"
    )


def _job_words(place: Workplace, project: Project, subset: Subset) -> str:
    """What the running jobs of this subset say of themselves; why one failed, if one did."""
    mine = [job for job in queue_status(place.redis).jobs if job.id.startswith(f"project-{project.id}-{subset.name}-")]
    failed = [f"{job.state}: {job.reason}" for job in mine if job.reason]
    running = [progress_words(job.progress) for job in mine if job.state == "running" and job.progress]
    return "; ".join(failed or running)
