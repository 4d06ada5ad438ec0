"""What a command works with: the store and Redis of this installation, and the project that was named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from jobs.settings import Settings
from jobs.workplace import Workplace, workplace
from store import projects
from store.projects import UnknownProject
from store.tables import Project
from studio.client import tidy_url


@contextmanager
def opened(backend_url: str | None = None) -> Iterator[Workplace]:
    settings = Settings.from_env()
    if backend_url:
        settings = settings.at(tidy_url(backend_url))
    with workplace(settings) as place:
        yield place


def known(place: Workplace, url: str | None, studio_id: int) -> Project:
    """The project, connected or not. Without an address it is that of the only Label Studio there is."""
    with place.store.read() as session:
        address = (
            tidy_url(url)
            if url
            else _only_address([project.studio_url for project in projects.all_known(session) if project.root is None])
        )
        project = projects.by_address(session, address, studio_id)
    if project is None:
        raise UnknownProject(f"project {studio_id} of {address} is not known; `iwes status` lists those that are")
    return project


def connected(place: Workplace, url: str | None, studio_id: int, *, or_half: bool = False) -> Project:
    """The connected project; with `or_half` also one whose connecting or disconnecting was cut off."""
    project = known(place, url, studio_id)
    if not (project.connected or (or_half and project.before)):
        raise UnknownProject(
            f"project {studio_id} of {project.studio_url} is not connected; `iwes status` lists those that are"
        )
    return project


def _only_address(addresses: list[str]) -> str:
    if not addresses:
        raise UnknownProject("no project is connected yet: `iwes connect --url … --token … --project …` connects one")
    if len(different := sorted(set(addresses))) > 1:
        raise click.UsageError(f"--url is needed, for several Label Studios are known: {', '.join(different)}")
    return different[0]
