"""The tables: what is remembered, and which facts can exist only once."""

from __future__ import annotations

import zlib
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    String,
    TypeDecorator,
    UniqueConstraint,
    func,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship


class Moment(TypeDecorator[datetime]):
    """A point in time, always in UTC and always aware; SQLite by itself forgets the zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone; a moment needs one")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return value.replace(tzinfo=UTC) if value is not None and value.tzinfo is None else value


StudioId = BigInteger().with_variant(Integer(), "sqlite")
"""An id that Label Studio gave: how large they get is its own business."""


def now() -> datetime:
    return datetime.now(UTC)


class Base(DeclarativeBase):
    type_annotation_map = {datetime: Moment, dict[str, Any]: JSON, list[str]: JSON}


class RoundState(StrEnum):
    """A round only ever moves down this list; what is due next follows from where its last round stands."""

    DRAWN = "drawn"
    """The draws are stored; annotators do not see them yet. Due: publish."""
    OPEN = "open"
    """Annotators are served its tasks. Due: nothing, labels are awaited."""
    CLOSED = "closed"
    """Its labels are in. Due: training."""
    TRAINED = "trained"
    """Its model exists. Due: the draw of the next round."""


class Mode(StrEnum):
    """Which of a project's tasks rounds are drawn from."""

    AUTO = "auto"
    """Unlabelled tasks by the project's `Rule`, for annotators; and tasks that came with a label by IWeS-dis, without
    anybody."""
    ENT = "ent"
    """Unlabelled tasks only. Labels that were there already all train, with weight 1."""
    DIS = "dis"
    LOSS = "loss"
    """Tasks that came with a label only, by the rule of that name."""


class Rule(StrEnum):
    """What makes it likely that annotators are asked for a task."""

    ENT = "ent"
    """The entropy of all classes: the model's answer is spread."""
    MARGIN = "margin"
    """The two likeliest classes: the model is torn between them."""


FOLDER = "folder:"
"""How the address of a data set outside of Label Studio begins; the folder of its images follows."""


class Project(Base):
    __tablename__ = "project"
    __table_args__ = (UniqueConstraint("studio_url", "studio_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    studio_url: Mapped[str]
    studio_id: Mapped[int] = mapped_column(StudioId)
    title: Mapped[str]
    token: Mapped[str]
    secret: Mapped[str] = mapped_column(unique=True)
    """Known to the connected Label Studio alone: the webhook's header and the password of its calls."""
    backend_url: Mapped[str]

    control: Mapped[str]
    """Name of the Choices tag, of the Image tag it speaks of, and of the task's field that holds the image."""
    target: Mapped[str]
    field: Mapped[str]
    classes: Mapped[list[str]]

    mode: Mapped[Mode] = mapped_column(String(8), default=Mode.AUTO)
    rule: Mapped[Rule] = mapped_column(String(8), default=Rule.ENT)
    seed_size: Mapped[int]
    k: Mapped[int]
    cap: Mapped[float]
    floor: Mapped[float]
    reserve: Mapped[float]
    sharpness: Mapped[float]
    network: Mapped[str]
    training: Mapped[dict[str, Any]] = mapped_column(default=dict)
    """How the network is trained: the fields of a `Plan`."""
    rng_seed: Mapped[int]

    connected: Mapped[bool] = mapped_column(default=False)
    before: Mapped[dict[str, Any]] = mapped_column(default=dict)
    """The project's own settings as they were before it was connected, for `disconnect`."""
    created_at: Mapped[datetime] = mapped_column(default=now)
    webhook_seen_at: Mapped[datetime | None]
    reconciled_at: Mapped[datetime | None]
    read_until: Mapped[datetime | None]
    """Up to when, by Label Studio's clock, its changes were read."""
    read_wholly_at: Mapped[datetime | None]
    """When all of its tasks were last read, changed or not."""

    @property
    def root(self) -> Path | None:
        """Where the images of a data set outside of Label Studio lie; None for a project of Label Studio."""
        return Path(self.studio_url.removeprefix(FOLDER)) if self.studio_url.startswith(FOLDER) else None


class Task(Base):
    __tablename__ = "task"
    __table_args__ = (UniqueConstraint("project_id", "studio_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    studio_id: Mapped[int] = mapped_column(StudioId)
    data: Mapped[dict[str, Any]]
    gone: Mapped[bool] = mapped_column(default=False)
    """Deleted in Label Studio. The row stays, because draws and labels speak of it."""
    problem: Mapped[str | None]
    """Why the task cannot be used (an unreadable image); such a task is set aside."""


class Subset(Base):
    """A weighted subset of the tasks that came with a label: selected in rounds of its own, without any annotator."""

    __tablename__ = "subset"
    __table_args__ = (UniqueConstraint("project_id", "name"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    name: Mapped[str]
    rule: Mapped[str]
    size: Mapped[int]
    """How many tasks were asked for; 0 for an automatic one that only keeps pace with the annotators' rounds."""
    auto: Mapped[bool] = mapped_column(default=False)
    """Whether it was begun by itself, because the project has both kinds of tasks."""
    seed_size: Mapped[int]
    k: Mapped[int]
    cap: Mapped[float]
    floor: Mapped[float]
    sharpness: Mapped[float]
    reviewed_round: Mapped[int | None]
    """Of which of its rounds the models have looked at every label for `Doubt`s."""
    published_round: Mapped[int | None]
    """Up to which of its rounds Label Studio shows it."""
    created_at: Mapped[datetime] = mapped_column(default=now)

    @property
    def twins(self) -> bool:
        """Whether its rule needs a second model, g, beside f."""
        return self.rule == "dis"

    @property
    def stream(self) -> int:
        """Which random numbers are its own: those of its name, so that one seed gives one subset in every store."""
        return zlib.crc32(self.name.encode())


class Round(Base):
    __tablename__ = "round"

    id: Mapped[int] = mapped_column(primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    subset_id: Mapped[int | None] = mapped_column(ForeignKey("subset.id", ondelete="CASCADE"))
    """The subset it was drawn for; None for a round that annotators answer."""
    number: Mapped[int]
    """0 is the seed round, of the annotators or of the subset."""
    state: Mapped[RoundState] = mapped_column(String(16))
    rule: Mapped[str]
    model_version: Mapped[str | None]
    """The model whose probabilities drew it; none for the seed."""
    wanted: Mapped[int]
    """How many labels of its own draws close it."""
    batch_size: Mapped[int]
    pool_size: Mapped[int]
    examined: Mapped[int]
    cap: Mapped[float]
    floor: Mapped[float]
    reserve: Mapped[float]
    sharpness: Mapped[float]
    """What the project was set to when the round was drawn, so that each weight can be explained later."""
    expected: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    """How common the drawing model expects each class to be: "shares", the mean of its probabilities over so many
    "tasks", all that it was asked about, and the "classes" in their order, which is that of `Draw.beliefs` too. And how
    "sure" it is of its own answers, on the mean of the same tasks; rounds of long ago do not say."""
    needs: Mapped[int | None]
    """At least so many more labels must arrive before the open round can be complete; None where that has to be counted
    first. It saves the counting at every label but the last few."""
    drawn_at: Mapped[datetime] = mapped_column(default=now)
    opened_at: Mapped[datetime | None]
    closed_at: Mapped[datetime | None]
    twins: Mapped[bool] = mapped_column(default=False)
    """Whether two models are trained at its end: f and, from other random numbers, g."""
    f_trained_at: Mapped[datetime | None]
    g_trained_at: Mapped[datetime | None]
    """When that one's training was over, with a model or without."""
    trained_at: Mapped[datetime | None]
    problem: Mapped[str | None]
    """Why no model came out of its training."""
    draws: Mapped[list[Draw]] = relationship(back_populates="round", order_by="Draw.rank")
    subset: Mapped[Subset | None] = relationship()

    @property
    def queue(self) -> str:
        """Name under which Label Studio serves this round: never a model's version nor the backend's title."""
        return f"iwes-queue-{self.number}"


Index("uq_round_number", Round.project_id, func.coalesce(Round.subset_id, 0), Round.number, unique=True)


class Draw(Base):
    """One accepted coin: why a task was asked for, and with what probability."""

    __tablename__ = "draw"
    __table_args__ = (UniqueConstraint("round_id", "rank"), UniqueConstraint("round_id", "task_id"))

    id: Mapped[int] = mapped_column(primary_key=True)
    round_id: Mapped[int] = mapped_column(ForeignKey("round.id", ondelete="CASCADE"))
    task_id: Mapped[int] = mapped_column(ForeignKey("task.id"), index=True)
    rank: Mapped[int]
    reserve: Mapped[bool]
    position: Mapped[int]
    passes: Mapped[int]
    score: Mapped[float | None]
    probability: Mapped[float]
    weight: Mapped[float]
    inclusion: Mapped[float]
    predicted: Mapped[str | None]
    """The class the drawing model gave it: against the label it tells how good that model is, at no extra cost."""
    beliefs: Mapped[bytes | None]
    """The probability the drawing model gave each class, as little-endian single floats."""
    round: Mapped[Round] = relationship(back_populates="draws")
    task: Mapped[Task] = relationship()

    @property
    def model_version(self) -> str | None:
        return self.round.model_version


class Label(Base):
    """One annotation of Label Studio, joined to the draw that asked for it."""

    __tablename__ = "label"
    __table_args__ = (
        UniqueConstraint("project_id", "annotation_id"),
        Index("ix_label_round", "project_id", "round_number"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    annotation_id: Mapped[int] = mapped_column(StudioId)
    task_id: Mapped[int] = mapped_column(ForeignKey("task.id"), index=True)
    class_name: Mapped[str | None]
    """None where the annotator skipped, or where `problem` says why there is no class."""
    skipped: Mapped[bool]
    ground_truth: Mapped[bool]
    annotator: Mapped[int | None] = mapped_column(StudioId)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    deleted: Mapped[bool] = mapped_column(default=False)
    imported: Mapped[bool] = mapped_column(default=False)
    """Whether it came with the task, or was there before the project was connected: then the task is one of those that
    subsets are selected from."""
    problem: Mapped[str | None]
    draw_id: Mapped[int | None] = mapped_column(ForeignKey("draw.id"), index=True)
    """None for a label nobody asked for. One that an annotator made all the same counts as manual: weight 1, left out
    of estimates."""
    round_number: Mapped[int]
    """The round whose training sees it first: the open one, or the next while a model trains."""
    draw: Mapped[Draw | None] = relationship()
    task: Mapped[Task] = relationship()


class Model(Base):
    __tablename__ = "model"
    __table_args__ = (UniqueConstraint("project_id", "version"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    subset_id: Mapped[int | None] = mapped_column(ForeignKey("subset.id", ondelete="CASCADE"))
    round_number: Mapped[int]
    twin: Mapped[bool] = mapped_column(default=False)
    """Whether it is a g, which only ever serves beside its f."""
    version: Mapped[str]
    examples: Mapped[int]
    metrics: Mapped[dict[str, Any]]
    created_at: Mapped[datetime] = mapped_column(default=now)


class Doubt(Base):
    """A label that both models of a subset's last round find improbable."""

    __tablename__ = "doubt"
    __table_args__ = (UniqueConstraint("subset_id", "task_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    subset_id: Mapped[int] = mapped_column(ForeignKey("subset.id", ondelete="CASCADE"))
    task_id: Mapped[int] = mapped_column(ForeignKey("task.id"))
    class_name: Mapped[str]
    suggested: Mapped[str]
    """The class that f finds likeliest."""
    improbability: Mapped[float]
    """1 − the larger of P_f(label) and P_g(label)."""
    disagreement: Mapped[float]
    withdrawn: Mapped[bool] = mapped_column(default=False)
    """No longer doubted; it is only kept until Label Studio no longer shows it."""
    task: Mapped[Task] = relationship()
