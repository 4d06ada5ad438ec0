"""Subsets of the tasks that came with a label: what was asked for, and how much of it is selected."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from sqlalchemy import ColumnElement, Select, and_, delete, exists, func, or_, select, update
from sqlalchemy.orm import Session, contains_eager

from store import pool, rounds
from store.tables import Doubt, Draw, Label, Mode, Project, Round, Rule, Subset, Task

WORTH_A_ROUND = 0.05
"""The part of a complete subset that must be missing before tasks are drawn in its place."""
AUTO = "auto"
"""Name of the one that begins by itself in a project with both kinds of tasks."""
RULES = ("dis", "loss")
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
_TAKEN = ("queue", "model", "untrained")
"""Models of these subsets would be called like something else."""


class BadSubset(ValueError):
    """A subset that cannot be selected as asked; the message says what to change."""


def by_id(session: Session, subset_id: int) -> Subset:
    return session.get_one(Subset, subset_id)


def by_name(session: Session, project: Project, name: str) -> Subset | None:
    return session.scalar(_of(project).where(Subset.name == name))


def named(session: Session, project: Project, name: str) -> Subset:
    """Raises BadSubset where there is none of that name."""
    subset = by_name(session, project, name)
    if subset is None:
        there = ", ".join(found.name for found in all_of(session, project)) or "none"
        raise BadSubset(f"--subset is {name!r}, but the subsets of this project are: {there}")
    return subset


def all_of(session: Session, project: Project) -> Sequence[Subset]:
    return session.scalars(_of(project).order_by(Subset.id)).all()


def current(session: Session, project: Project) -> Subset | None:
    """The one whose tasks train with what annotators label: the newest."""
    if project.mode == Mode.ENT:
        return None
    return session.scalar(_of(project).order_by(Subset.id.desc()).limit(1))


def ask(
    session: Session,
    project: Project,
    *,
    name: str,
    rule: str,
    size: int,
    seed_size: int | None = None,
    k: int | None = None,
    cap: float | None = None,
    floor: float | None = None,
    auto: bool = False,
) -> Subset:
    """Begins a subset, or asks more of one that is there. What is not given is as in the project. Call with the project
    locked. Raises BadSubset."""
    _check(session, project, name, rule, size, auto=auto)
    subset = by_name(session, project, name)
    if subset is None:
        subset = Subset(
            project_id=project.id,
            name=name,
            rule=rule,
            size=size,
            auto=auto,
            seed_size=seed_size or project.seed_size,
            k=k or project.k,
            cap=cap or project.cap,
            floor=project.floor if floor is None else floor,
            sharpness=project.sharpness,
        )
        session.add(subset)
    elif subset.rule != rule:
        raise BadSubset(f"the subset {name!r} is being selected by {subset.rule}; give another --name for {rule}")
    elif size < subset.size:
        raise BadSubset(f"the subset {name!r} was asked for with {subset.size} tasks; give another --name for {size}")
    else:
        given = {"seed_size": seed_size, "k": k, "cap": cap, "floor": floor}
        for chance, value in given.items():
            if value is not None and value != getattr(subset, chance):
                was = f"--{chance.removesuffix('_size')} {getattr(subset, chance):g}"
                raise BadSubset(f"the subset {name!r} was begun with {was}; give that, or another --name")
        if size > selected(session, subset):
            subset.size, subset.published_round = size, None  # whoever asks again gets all there is, see `wanted`
    session.flush()
    return subset


def rule_of(project: Project) -> str:
    """The rule by which its mode selects from tasks that came with a label."""
    return str(project.mode) if project.mode in RULES else "dis"


def begin_if_mixed(session: Session, project: Project) -> Subset | None:
    """In a project with both kinds of tasks, those that came with a label help from the first minute. Call with the
    project locked; returns the subset if it was begun now."""
    if project.mode != Mode.AUTO or all_of(session, project) or not pool.came_labelled(session, project):
        return None
    if not pool.any_drawable(session, project):
        return None
    return ask(session, project, name=AUTO, rule="dis", size=0, auto=True)


def target(session: Session, project: Project, subset: Subset) -> int:
    """How many tasks it is to have now. An automatic one keeps pace with the annotators: k more with each round of
    theirs. Once no task is left to ask them for, it goes on by itself to the size asked for."""
    if not subset.auto:
        return subset.size
    newest = current(session, project)
    if newest is not None and newest.id != subset.id:
        return selected(session, subset)  # another is trained on now, so this one stays as it is
    drawn = sum(round_.rule in list(Rule) for round_ in rounds.all_of(session, project))
    pace = subset.seed_size + subset.k * drawn
    if not subset.size or pace >= subset.size:
        return min(pace, subset.size or pace)
    asking = project.mode == Mode.AUTO and pool.any_drawable(session, project)
    return pace if asking else subset.size


def selected(session: Session, subset: Subset) -> int:
    """Its tasks that are still there, with their labels."""
    count = select(func.count(Draw.task_id.distinct())).join(Round).join(Task).where(_is_member(subset))
    return session.scalar(count) or 0


def wanted(session: Session, project: Project, subset: Subset) -> int:
    """How many its next round is to draw, if there are as many; 0 once it has all asked for, or all there is. Of one
    that was complete, tasks that are gone since are replaced together: each round costs two trainings."""
    asked = target(session, project, subset)
    missing = asked - selected(session, subset)
    last = rounds.latest(session, project, subset)
    was_complete = last is not None and subset.published_round == last.number
    enough = min(subset.k, math.ceil(WORTH_A_ROUND * asked)) if was_complete else 1
    if missing < enough or not pool.any_selectable(session, project, subset):
        return 0
    return min(missing, subset.k if last else subset.seed_size)


def replace_doubts(session: Session, subset: Subset, found: Sequence[Doubt]) -> None:
    """What a review found. What an earlier one did, and this one did not, is withdrawn."""
    session.execute(update(Doubt).where(Doubt.subset_id == subset.id).values(withdrawn=True))
    again = [doubt.task_id for doubt in found]
    session.execute(delete(Doubt).where(Doubt.subset_id == subset.id, Doubt.task_id.in_(again)))
    for doubt in found:
        doubt.subset_id = subset.id
    session.add_all(found)


def doubts(session: Session, subset: Subset, *, withdrawn: bool = False) -> Sequence[Doubt]:
    """The labels worth a second look, the least probable first."""
    mine = select(Doubt).where(Doubt.subset_id == subset.id, Doubt.withdrawn == withdrawn)
    return session.scalars(mine.order_by(Doubt.improbability.desc(), Doubt.id)).all()


def published(session: Session, subset: Subset, number: int | None, withdrawn: Sequence[Doubt] = ()) -> None:
    """Label Studio shows the subset as it was after this round of its, and no longer these doubts."""
    subset.published_round = number
    session.execute(delete(Doubt).where(Doubt.id.in_([doubt.id for doubt in withdrawn])))


def members(session: Session, subset: Subset) -> Sequence[Draw]:
    """The draws of its tasks that are still there, in the order of selection."""
    return session.scalars(_members(subset).order_by(Round.number, Draw.rank)).all()


def members_among(session: Session, subset: Subset, studio_ids: Iterable[int]) -> list[Draw]:
    """Those of them whose tasks have one of these ids in Label Studio."""
    found = (
        session.scalars(_members(subset).where(Task.studio_id.in_(some))) for some in pool.chunks(list(studio_ids))
    )
    return [draw for some in found for draw in some]


def dropped(session: Session, subset: Subset) -> Sequence[Task]:
    """Tasks that were drawn and are members no more, as their labels were taken back or their images cannot be read;
    without those that annotators were asked for since."""
    asked = exists().where(Draw.task_id == Task.id, Draw.round_id == Round.id, Round.subset_id.is_(None))
    drawn = select(Draw.task_id).join(Round).where(Round.subset_id == subset.id)
    members_ = select(Draw.task_id).join(Round).join(Task).where(_is_member(subset))
    return session.scalars(
        select(Task).where(Task.id.in_(drawn), Task.id.not_in(members_), ~Task.gone, ~asked).order_by(Task.id)
    ).all()


def published_names(session: Session, project: Project, beside: Subset) -> dict[int, list[str]]:
    """Of which subsets that Label Studio shows, and of this one, each of this one's tasks is: names by task."""
    rows = session.execute(
        select(Draw.task_id, Subset.name)
        .join(Round, Draw.round_id == Round.id)
        .join(Subset, Round.subset_id == Subset.id)
        .where(Subset.project_id == project.id, or_(Subset.id == beside.id, Subset.published_round.is_not(None)))
        .order_by(Subset.id)
    )
    names: dict[int, list[str]] = {}
    for task_id, name in rows:
        names.setdefault(task_id, []).append(name)
    return names


def _members(subset: Subset) -> Select[Draw]:
    drawn = select(Draw).join(Round).join(Task).options(contains_eager(Draw.round), contains_eager(Draw.task))
    return drawn.where(_is_member(subset))


def _is_member(subset: Subset) -> ColumnElement[bool]:
    labelled = exists().where(Label.task_id == Draw.task_id, ~Label.deleted, Label.class_name.is_not(None))
    return and_(Round.subset_id == subset.id, ~Task.gone, Task.problem.is_(None), labelled)


def _of(project: Project) -> Select[Subset]:
    return select(Subset).where(Subset.project_id == project.id)


def _check(session: Session, project: Project, name: str, rule: str, size: int, *, auto: bool) -> None:
    if not _NAME.fullmatch(name) or name in _TAKEN:
        raise BadSubset(f"--name is {name!r}; give small letters, digits and dashes, at most 32, and not {_TAKEN[0]!r}")
    nested = [s.name for s in all_of(session, project) if s.name != name and (s.name in name or name in s.name)]
    if nested and project.root is None:
        raise BadSubset(f"--name {name!r} cannot be told from {nested[0]!r} in the Data Manager; give another one")
    if rule not in RULES:
        raise BadSubset(f"--rule is {rule!r}; give {' or '.join(RULES)}")
    known = by_name(session, project, name)
    if auto or (known is not None and size <= known.size):
        return
    there = pool.came_labelled(session, project)
    if not there:
        raise BadSubset("no task of this project came with a label, so there is nothing to select from")
    if not 2 <= size <= there:
        raise BadSubset(f"--size is {size}; {there} tasks came with a label: give a number from 2 to {there}")
