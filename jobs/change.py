"""Changes how a connected project goes on: from its next step on, and without touching what was drawn before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from jobs.connect import Options
from jobs.loop import advance
from jobs.workplace import Workplace
from models.plan import Plan
from store import projects, rounds, subsets
from store.tables import Project, RoundState

CHANCES = ("k", "cap", "floor", "reserve", "sharpness")
SAMPLING = ("rule", *CHANCES)
"""The options of a project that only later draws see; `CHANCES` are those that are numbers."""


@dataclass(frozen=True)
class Change:
    option: str
    before: object
    after: object
    effect: str
    """What comes of it, as the project stands now."""

    @property
    def said(self) -> str:
        if isinstance(self.after, Plan):
            return "the training is changed"
        return f"{self.option} is {self.after} now, and was {self.before}"

    @property
    def would_be(self) -> str:
        if isinstance(self.after, Plan):
            return "the training would be changed"
        return f"{self.option} would be {self.after}, and is {self.before}"


def change(place: Workplace, project_id: int, wishes: Mapping[str, Any]) -> list[Change]:
    """`wishes` are options of `connect` by name; those that are as they were change nothing. Raises BadOption or
    PlanError, and then nothing is changed."""
    with place.store.write() as session:
        project = projects.lock(session, project_id)
        changes = list(_changes(session, project, wishes))
        for made in changes:
            _make(session, project, made)
    if changes:
        advance(place, project_id)
    return changes


def consider(place: Workplace, project_id: int, wishes: Mapping[str, Any]) -> list[Change]:
    """What `change` would do now, without doing it. Raises what it would."""
    with place.store.read() as session:
        return list(_changes(session, projects.by_id(session, project_id), wishes))


def options_of(project: Project) -> Options:
    same = {name: getattr(project, name) for name in (*SAMPLING, "mode", "seed_size", "network", "rng_seed")}
    return Options(training=Plan.from_dict(project.training), **same)


def _changes(session: Session, project: Project, wishes: Mapping[str, Any]) -> Iterator[Change]:
    now = options_of(project)
    training = {**now.training.as_dict(), **{name: wishes[name] for name in ("way", "calibrate") if name in wishes}}
    if wishes.get("network", now.network) != now.network:
        training |= {"pretrained": None, "way": wishes.get("way", "auto")}
    plan = Plan.from_dict(training)
    wanted = {name: wishes[name] for name in (*SAMPLING, "mode", "network") if name in wishes}
    Options(**{**vars(now), **wanted, "training": plan}).check()
    for name, value in wanted.items():
        if value != getattr(now, name):
            yield Change(name, getattr(now, name), value, _effect(session, project, name))
    if plan != now.training:
        yield Change("training", now.training, plan, "the next training is made this way")


def _effect(session: Session, project: Project, name: str) -> str:
    last = rounds.latest(session, project)
    if name == "k" and last is not None and last.state in (RoundState.DRAWN, RoundState.OPEN):
        return f"from round {last.number + 1} on; round {last.number} still waits for its {last.wanted} labels"
    if name == "reserve":
        return "from the next draw on; what is drawn already stays"
    if name == "network":
        return "the next training begins anew with it; until then the last model answers and draws"
    if name == "mode":
        return "at once: what is drawn from now on follows it"
    return "from the next draw on; weights and probabilities of earlier draws stay as they were"


def _make(session: Session, project: Project, made: Change) -> None:
    if made.option == "mode":
        subsets.begin_if_mixed(session, projects.change_mode(session, project.id, str(made.after)))
    elif isinstance(made.after, Plan):
        project.training = made.after.as_dict()
    else:
        setattr(project, made.option, made.after)
