"""The whole run: Label Studio and backend are started, the loop is timed, then labels are given beside trainings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree

from backend.embedded.label_studio import version_at
from backend.embedded.ports import any_free
from backend.embedded.process import Stack
from backend.up import start_backend
from benchmarks.loop import again, pictures, rounds, studio
from benchmarks.loop.beside import Beside, Side, join
from benchmarks.loop.others import Others
from benchmarks.loop.progress import say
from benchmarks.loop.report import Report, made_with
from benchmarks.loop.rounds import Timed
from benchmarks.loop.settings import Settings
from benchmarks.loop.studio import Studio
from jobs.settings import Settings as Installation
from jobs.settings import runtime_folder
from jobs.workplace import workplace

NEVER = 24 * 3600
"""Seconds between two reconciles: none may repair what a webhook has missed before it is counted."""


@dataclass(frozen=True)
class _Backend:
    """What was measured while the backend ran."""

    project: int
    timed: list[Timed]
    other_cores: float
    side: Side


def run(home: Path, settings: Settings) -> Report:
    """Raises NoStudio, LoopStalled, ProcessFailed and what Label Studio refuses."""
    env = {"IWES_HOME": str(home / "iwes"), "IWES_PORT": str(any_free()), "IWES_RECONCILE_SECONDS": str(NEVER)}
    installation = Installation.from_env(env)
    with Stack() as stack:
        server, process = studio.begin(stack, home / "studio")
        with Stack() as ours:
            ours.callback(rmtree, runtime_folder(installation.home), ignore_errors=True)  # outside of the home
            say(f"starting Redis, backend, workers and Label Studio; drawing {settings.pool:,} digits")
            start_backend(ours, installation)
            drawn = pictures.draw_digits(server.files_root, settings.pool)
            labelled_in = studio.awaited(server, process, drawn)
            beside = Beside(labelled_in, labelled_in.people(settings.annotators), settings, [stack, ours])
            measured = _with_backend(installation, labelled_in, beside, settings)
        say("the same trainings and forward passes in a plain process")
        others = Others([stack])
        compared = again.compared(
            installation.home, server.files_root, measured.project, measured.timed, settings.repeats
        )
        busy = {"loop": measured.other_cores, "bare": others.cores}
        sides = [beside.alone(), measured.side]
        sides += [beside.official(home, way) for way in settings.ways]
        return Report(settings, made_with(version_at(server.url) or ""), busy, compared, sides)


def _with_backend(installation: Installation, labelled_in: Studio, beside: Beside, settings: Settings) -> _Backend:
    with workplace(installation) as place:
        project = join(place, labelled_in, settings.k)
        say(f"the loop, {settings.rounds} rounds of {settings.k} labels")
        others = Others(beside.stacks)
        timed = rounds.follow(place, project, labelled_in, settings.rounds)
        return _Backend(project.id, timed, others.cores, beside.ours(place))
