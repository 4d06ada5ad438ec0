"""The demo's images on disk: a pool to label and, where the truth is known, a held-out part to judge models on."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

HELD_OUT_SHARE = 0.2
SPLIT_SEED = 20230501
WRITERS = 4
INDEX = "index.json"

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Picture:
    path: str
    """Relative to the root of its `Pictures`; a running number, so that it does not give the label away."""
    truth: str | None


@dataclass(frozen=True)
class Pictures:
    root: Path
    """Holds `pool/`, which Label Studio serves, and beside it `held-out/` and the index, which it does not."""
    classes: list[str]
    pool: list[Picture]
    held_out: list[Picture]

    @property
    def name(self) -> str:
        return self.root.name

    @property
    def labelled(self) -> bool:
        """Whether the truth is known, so that a scripted annotator can label."""
        return all(picture.truth is not None for picture in self.pool)

    def save(self) -> None:
        """Written last and renamed into place: an index that is there means that the images are there."""
        partial = self.root / f"{INDEX}.partial"
        content = asdict(self)
        del content["root"]
        partial.write_text(json.dumps(content))
        partial.replace(self.root / INDEX)

    @classmethod
    def load(cls, root: Path) -> Pictures:
        content: dict[str, Any] = json.loads((root / INDEX).read_text())
        pool, held_out = ([Picture(**entry) for entry in content[part]] for part in ("pool", "held_out"))
        return cls(root, content["classes"], pool, held_out)


class Source(Protocol):
    """Where images come from. Reading `images` may be slow; it is not done again once the images are on disk."""

    @property
    def name(self) -> str: ...
    @property
    def classes(self) -> list[str]: ...
    def images(self) -> Sequence[SourceImage]: ...


class SourceImage(Protocol):
    @property
    def truth(self) -> str | None: ...
    @property
    def suffix(self) -> str: ...
    def write(self, path: Path) -> None: ...


def prepare(source: Source, folder: Path, progress: Progress = lambda done, total: None) -> Pictures:
    """The source's images below `folder`, written at the first call and only read at later ones."""
    root = folder / source.name
    if (root / INDEX).exists():
        return Pictures.load(root)
    images = source.images()
    pool, held_out = split([image.truth for image in images])
    jobs = [*_placed(images, pool, "pool"), *_placed(images, held_out, "held-out")]
    for part in ("pool", "held-out"):
        (root / part).mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(WRITERS) as writers:
        written = writers.map(lambda job: job[0].write(root / job[1]), jobs)
        for done, _ in enumerate(written, start=1):
            progress(done, len(jobs))
    listed = [Picture(path, image.truth) for image, path in jobs]
    pictures = Pictures(root, list(source.classes), listed[: len(pool)], listed[len(pool) :])
    pictures.save()
    return pictures


def split(truths: Sequence[str | None]) -> tuple[list[int], list[int]]:
    """Pool and held-out positions, each in random order, the held-out part stratified by class. Always the same."""
    rng = random.Random(SPLIT_SEED)  # noqa: S311 - a repeatable split, not a secret
    by_class: dict[str | None, list[int]] = defaultdict(list)
    for position, truth in enumerate(truths):
        by_class[truth].append(position)
    pool, held_out = [], []
    for truth, positions in by_class.items():
        rng.shuffle(positions)
        kept = 0 if truth is None else round(len(positions) * HELD_OUT_SHARE)
        held_out += positions[:kept]
        pool += positions[kept:]
    rng.shuffle(pool)
    rng.shuffle(held_out)
    return pool, held_out


def _placed(images: Sequence[SourceImage], order: Iterable[int], part: str) -> list[tuple[SourceImage, str]]:
    return [(images[at], f"{part}/{number:05d}{images[at].suffix}") for number, at in enumerate(order, start=1)]
