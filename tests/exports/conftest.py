"""A project with a row of every kind."""

from __future__ import annotations

import pytest

from store import labels, pool, rounds, subsets
from store.database import Store
from store.tables import Draw, Project, Round, Subset
from tests.conftest import a_label, add_round, make_project, put_label

FORMULAS = {7: "=1+1", 8: "+cmd", 9: "-2", 10: "@x", 11: "\tx", 12: "\rx"}


@pytest.fixture
def project(store: Store) -> Project:
    """Tasks 1 to 4 drawn for annotators, the last two as reserve; 5 labelled by hand; 6 to 12 came with a label."""
    names = ["cat", "dog", "größe", *FORMULAS.values()]
    project = make_project(store, tasks=12, classes=names)
    with store.write() as session:
        data = {n: {"image": f"/data/{n}.png", "text": f"t{n}", "al_weight": 1.5} for n in range(1, 13)}
        pool.mirror(session, project, data)
        labels.record_given(session, project, {6: "dog", **FORMULAS})
    add_round(store, project, 0, [1, 2, 3, 4], wanted=2)
    for n, name in ((1, "cat"), (2, "dog"), (3, "größe"), (5, "cat")):
        put_label(store, project, n, a_label(100 + n, name))
    put_label(store, project, 1, a_label(201, "cat", minutes=1))
    put_label(store, project, 4, a_label(104, None))
    return project


@pytest.fixture
def subset(store: Store, project: Project) -> Subset:
    """Drawn from those that came with a label: all but 6."""
    with store.write() as session:
        found = subsets.ask(session, project, name="dis", rule="dis", size=6)
        tasks = pool.by_studio_id(session, project, range(7, 13))
        for number, (ids, version) in enumerate([((12, 11, 10), None), ((7, 8, 9), "iwes-dis-0")]):
            draws = [
                Draw(
                    task_id=tasks[n].id,
                    rank=rank,
                    reserve=False,
                    position=rank,
                    passes=rank,
                    score=None if version is None else 1 / 3,
                    probability=0.1 * n,
                    weight=1 + 1 / n,
                    inclusion=0.2,
                )
                for rank, n in enumerate(ids)
            ]
            sizes = {"wanted": 3, "batch_size": 3, "pool_size": 7, "examined": 7}
            chances = {"cap": 2.0, "floor": 0.05, "reserve": 0.0, "sharpness": 1.0}
            round_ = Round(number=number, rule="dis", model_version=version, **sizes, **chances)
            rounds.add_selected(session, project, found, round_, draws)
    return found
