"""What every job has at hand: settings, the store, Redis, a client for a project's Label Studio, and learners."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from jobs.settings import Settings
from store.database import Store, open_store
from store.tables import Project
from studio.client import Client
from studio.projects import StudioProject

if TYPE_CHECKING:
    from models.workshop import Workshop

REDIS_SECONDS = 0.3
"""A webhook has one second in all, so a Redis that does not answer must be given up sooner than that."""


@dataclass(frozen=True)
class Workplace:
    settings: Settings
    store: Store

    @cached_property
    def redis(self) -> Redis:
        return Redis.from_url(
            self.settings.redis_url,
            socket_connect_timeout=REDIS_SECONDS,
            socket_timeout=REDIS_SECONDS,
            retry=Retry(NoBackoff(), 0),
        )

    @cached_property
    def workshop(self) -> Workshop:
        from models.workshop import Workshop  # brings torch, which most commands do without

        folder = self.settings.models_folder / "frozen"
        return Workshop(self.settings.weights_folder, folder, self.settings.device)

    def studio(self, project: Project) -> StudioProject:
        return StudioProject(Client(project.studio_url, project.token), project.studio_id)


@contextmanager
def workplace(settings: Settings | None = None) -> Iterator[Workplace]:
    """Opened anew in each process and after each fork; the store's schema is brought up to date on the way."""
    settings = settings or Settings.from_env()
    store = open_store(settings.database_url)
    try:
        yield Workplace(settings, store)
    finally:
        store.close()
