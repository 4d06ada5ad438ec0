"""`iwes doctor`: what this machine has to train with, and what is missing."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from redis import Redis
from redis.exceptions import RedisError
from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from jobs.settings import Settings
from models import networks, plugins
from store.database import StoreError, open_store

LIBRARIES = ("torch", "torchvision", "label-studio-ml", "rq", "redis", "sqlalchemy", "fsspec")
ROOM_GIGABYTES = 2.0


@dataclass(frozen=True)
class Finding:
    subject: str
    said: str
    good: bool = True


@dataclass(frozen=True)
class Network:
    name: str
    reads: int | None
    """The side of the images it reads; None where the model cannot be made."""
    weights: str
    good: bool = True


@dataclass(frozen=True)
class Examination:
    findings: list[Finding]
    networks: list[Network]

    @property
    def sound(self) -> bool:
        """Nothing stands in the way of training."""
        return all(finding.good for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        return {"sound": self.sound, "findings": self.findings, "networks": self.networks}


def examine(settings: Settings) -> Examination:
    looks = (_software, _device, _home, _database, _redis, _images)
    return Examination([finding for look in looks for finding in look(settings)], list(_networks(settings)))


def show(found: Examination, console: Console) -> None:
    for finding in found.findings:
        mark = "[green]✓[/]" if finding.good else "[red]✗[/]"
        console.print(f"{mark} [bold]{finding.subject}[/]: {escape(finding.said)}", soft_wrap=True)
    table = Table("--network", "reads", "pre-trained weights", box=SIMPLE)
    for network in found.networks:
        reads = f"{network.reads} × {network.reads}" if network.reads else ""
        table.add_row(network.name, reads, escape(network.weights), style=None if network.good else "red")
    table.caption = "any other classification model of torchvision will do as well"
    console.print(table)


def _software(_settings: Settings) -> Iterator[Finding]:
    found = [f"Python {platform.python_version()}"]
    for name in LIBRARIES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            yield Finding(name, f"not installed: pip install {name}", good=False)
    yield Finding("software", ", ".join(found))


def _device(settings: Settings) -> Iterator[Finding]:
    import torch

    from models.device import NoSuchDevice, choose

    try:
        compute = choose(settings.device)
    except NoSuchDevice as error:
        yield Finding("device", f"IWES_DEVICE: {error}", good=False)
        return
    using = [str(compute.device)]
    if compute.autocast is not None:
        using.append(str(compute.autocast).removeprefix("torch."))
    if compute.channels_last:
        using.append("channels last")
    if compute.pinned:
        using.append("pinned loading")
    if compute.device.type == "cpu":
        using.append(f"{torch.get_num_threads()} threads on {os.cpu_count()} cores")
    yield Finding("device", f"{', '.join(using)} ({compute.why})")


def _home(settings: Settings) -> Iterator[Finding]:
    there = next(folder for folder in (settings.home, *settings.home.parents) if folder.exists())
    free = shutil.disk_usage(there).free / 2**30
    kept = {"images": settings.image_cache, "descriptions": settings.features_folder, "models": settings.models_folder}
    held = {name: _bytes(folder) / 2**30 for name, folder in kept.items()}
    sizes = ", ".join(f"{name} {size * 1024:.0f} MB" for name, size in held.items())
    wanted = max(0.0, settings.cache_gigabytes - held["images"] - held["descriptions"]) + ROOM_GIGABYTES
    writable = os.access(there, os.W_OK)
    said = f"{settings.home}, {free:.0f} GB free; {sizes}"
    if not writable:
        said += "; it cannot be written to: set IWES_HOME to a folder of your own"
    elif free < wanted:
        said += f"; caches may grow to {settings.cache_gigabytes:g} GB: lower IWES_CACHE_GB or make room"
    yield Finding("home", said, good=writable and free >= wanted)


def _database(settings: Settings) -> Iterator[Finding]:
    kind = settings.database_url.split(":")[0]
    file = Path(settings.database_url.removeprefix("sqlite:///"))
    if kind == "sqlite" and not file.exists() and file.parent in (settings.home, *settings.home.parents):
        yield Finding("database", "SQLite, made at the first start")
        return
    try:
        open_store(settings.database_url).close()
    except StoreError as error:
        yield Finding("database", str(error), good=False)
    else:
        yield Finding("database", f"{kind}, open and up to date")


def _redis(settings: Settings) -> Iterator[Finding]:
    try:
        Redis.from_url(settings.redis_url, socket_connect_timeout=1, socket_timeout=1).ping()
    except (RedisError, OSError) as error:
        if settings.redis_is_embedded:
            yield Finding("Redis", "embedded, not running now: `iwes up` starts it")
        else:
            yield Finding("Redis", f"REDIS_URL does not answer: {error}", good=False)
    else:
        yield Finding("Redis", "answers")


def _images(settings: Settings) -> Iterator[Finding]:
    from jobs.images.origins import OriginError, Origins

    try:
        Origins(settings.image_prefixes)
    except OriginError as error:
        yield Finding("images", str(error), good=False)
    else:
        more = ", ".join(settings.image_prefixes) or "nowhere else (set IWES_IMAGE_PREFIXES to allow more)"
        yield Finding("images", f"from the connected Label Studio, data URIs, and {more}")


def _networks(settings: Settings) -> Iterator[Network]:
    from models import pretrained
    from models.workshop import BadLearner, Workshop

    for name in networks.names():
        yield Network(name, networks.input_size(name), pretrained.status(name, settings.weights_folder))
    workshop = Workshop(settings.weights_folder, settings.models_folder / "frozen", settings.device)
    for name in plugins.names():
        try:
            yield Network(name, workshop.own(name).input_size, "a model of another package")
        except BadLearner as error:
            yield Network(name, None, str(error), good=False)


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) if folder.exists() else 0
