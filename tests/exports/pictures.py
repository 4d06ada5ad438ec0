"""Images on this disk as a project without Label Studio, all of them in a subset."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from store import labels, pool, projects, rounds, subsets
from store.database import Store
from store.tables import FOLDER, Draw, Mode, Project, Round
from tests.conftest import make_project

SUBSET = "dis"


def pictures_project(
    store: Store, root: Path, pixels: np.ndarray, truth: Sequence[int], classes: Sequence[str]
) -> Project:
    """Of pictures of 8 × 8 pixels from 0 to 16."""
    count, classes = len(truth), list(classes)
    root.mkdir(parents=True, exist_ok=True)
    project = make_project(store, studio_url=f"{FOLDER}{root}", classes=classes, mode=Mode.DIS, connected=False)
    for n in range(count):
        (root / f"{n + 1}.png").write_bytes(png(pixels[n]))
    with store.write() as session:
        project = projects.lock(session, project.id)
        pool.mirror(session, project, {n: {"image": f"{n}.png"} for n in range(1, count + 1)})
        labels.record_given(session, project, {n + 1: classes[truth[n]] for n in range(count)})
        subset = subsets.ask(session, project, name=SUBSET, rule="dis", size=count)
        tasks = pool.by_studio_id(session, project, range(1, count + 1))
        chances = {"cap": 2.0, "floor": 0.05, "reserve": 0.0, "sharpness": 1.0}
        sizes = {"wanted": count, "batch_size": count, "pool_size": count, "examined": count}
        round_ = Round(number=0, rule="seed", **sizes, **chances)
        rounds.add_selected(session, project, subset, round_, [_draw(tasks[n].id, n) for n in tasks])
    return project


def png(pixels: np.ndarray) -> bytes:
    held = io.BytesIO()
    Image.fromarray((pixels.reshape(8, 8) * 15).astype("uint8")).save(held, "PNG")
    return held.getvalue()


def _draw(task_id: int, n: int) -> Draw:
    p = 0.25 + (n % 4) * 0.25
    chances = {"score": p, "probability": p, "weight": min(1 / p, 2.0), "inclusion": p}
    return Draw(task_id=task_id, rank=n, reserve=False, position=n, passes=0, **chances)
