"""What people type into forms: kept as they typed it until it is right, with a word about each field that is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from backend.exports.errors import ExportError
from backend.exports.wish import Format, Weights
from jobs.change import CHANCES
from jobs.connect import BadOption
from models import networks, plugins
from models.plan import WAYS, Plan, PlanError
from store import subsets
from store.tables import Project, Subset
from store.weighted_set import STRATA

WHOLE, NUMBER, TEXT, TICK = "whole", "number", "text", "tick"
MODES = {
    "auto": "auto: all tasks, each kind by its own rule",
    "ent": "ent: unlabelled tasks only",
    "dis": "dis: labelled tasks only, by two models",
    "loss": "loss: labelled tasks only, by one model",
}
RULES = {
    "ent": "ent: answer spread over classes",
    "margin": "margin: torn between two classes",
}


@dataclass(frozen=True)
class Field:
    name: str
    label: str
    kind: str
    meaning: str
    """What it is, and what a change of it does."""
    choices: Mapping[str, str] = field(default_factory=dict)
    suggestions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Form:
    fields: list[Field]
    typed: Mapping[str, str]
    problems: dict[str, str] = field(default_factory=dict)

    def values(self) -> dict[str, Any]:
        """What was typed, as numbers where numbers are wanted; fields left empty are left out. What is no number is
        noted in `problems`."""
        found: dict[str, Any] = {}
        for each in self.fields:
            typed = self.typed.get(each.name, "").strip()
            if each.kind == TICK:
                found[each.name] = bool(typed)
            elif typed:
                try:
                    found[each.name] = _READ[each.kind](typed)
                except ValueError:
                    self.problems[each.name] = f"is {typed[:40]!r}: a {_WANTED[each.kind]} is expected here"
        return found

    def blame(self, error: Exception) -> None:
        """Notes what was found wrong with the values, beside the field it is about where that is known."""
        if isinstance(error, BadOption):
            self.problems[error.option] = error.rule
        else:
            self.problems[""] = str(error).replace("--", "")


_READ = {WHOLE: int, NUMBER: float, TEXT: str}
_WANTED = {WHOLE: "whole number", NUMBER: "number", TEXT: "text"}


@dataclass(frozen=True)
class SettingsForm(Form):
    @classmethod
    def of(cls, project: Project) -> SettingsForm:
        """As the project is set now."""
        plan = Plan.from_dict(project.training)
        typed = {name: f"{getattr(project, name):g}" for name in CHANCES}
        typed |= {"mode": project.mode, "rule": project.rule, "network": project.network, "way": plan.way}
        typed |= {"calibrate": "on" if plan.calibrate else ""}
        return cls(_settings_fields(), typed)

    @classmethod
    def typed_in(cls, form: Mapping[str, str]) -> SettingsForm:
        return cls(_settings_fields(), form)


@dataclass(frozen=True)
class SubsetForm(Form):
    @classmethod
    def blank(cls, project: Project) -> SubsetForm:
        rule = subsets.rule_of(project)
        return cls(_subset_fields(project), {"rule": rule, "name": rule})

    @classmethod
    def typed_in(cls, project: Project, form: Mapping[str, str]) -> SubsetForm:
        return cls(_subset_fields(project), form)


@dataclass(frozen=True)
class ExportForm(Form):
    @classmethod
    def asked(cls, known: Sequence[Subset], words: Mapping[str, str]) -> ExportForm:
        return cls(_export_fields([subset.name for subset in known]), words)


def _settings_fields() -> list[Field]:
    return [
        Field("k", "Labels per round", WHOLE, "k: a model is trained after so many. Counts from the next draw on."),
        Field(
            "cap",
            "Largest weight",
            NUMBER,
            "The training weight of a label is 1/p, but never above this. Counts from the next draw on.",
        ),
        Field(
            "floor",
            "Smallest probability",
            NUMBER,
            "Even a task the model is sure of is asked for with this chance. Counts from the next draw on.",
        ),
        Field("reserve", "Reserve", NUMBER, "Tasks to go on with while a model trains, as a part of k."),
        Field("sharpness", "Sharpness", NUMBER, "Above 1, tasks the model hesitates at are preferred more strongly."),
        Field(
            "rule",
            "Rule",
            TEXT,
            "What makes it likely that annotators are asked for a task. Counts from the next draw on.",
            choices=RULES,
        ),
        Field(
            "mode",
            "Drawn from",
            TEXT,
            "Unlabelled tasks are drawn for annotators, those that came with a label by the models alone. Takes effect "
            "at once.",
            choices=MODES,
        ),
        Field(
            "network",
            "Network",
            TEXT,
            "Another one is trained from the next training on; until then the last model answers.",
            suggestions=(*networks.names(), *plugins.names()),
        ),
        Field("way", "Training", TEXT, "head trains only the last part of a pre-trained network.", choices=_same(WAYS)),
        Field("calibrate", "Calibrate", TICK, "Scale probabilities to be right on labels not trained on."),
    ]


def _subset_fields(project: Project) -> list[Field]:
    return [
        Field("size", "Tasks", WHOLE, "How many the subset is to have."),
        Field("name", "Name", TEXT, "Small letters, digits and dashes. The name of one that is there asks more of it."),
        Field(
            "rule",
            "Rule",
            TEXT,
            "Two models that disagree about a label, or one that finds it improbable.",
            choices={"dis": "dis: disagreement of two models", "loss": "loss: loss of one model"},
        ),
        Field("k", "Tasks per round", WHOLE, f"Left empty: {project.k}, as in the project."),
        Field("cap", "Largest weight", NUMBER, f"Left empty: {project.cap:g}, as in the project."),
        Field("floor", "Smallest probability", NUMBER, f"Left empty: {project.floor:g}, as in the project."),
    ]


def _export_fields(subset_names: Sequence[str]) -> list[Field]:
    every = {"": "all that its models train on"} | {name: f"subset {name}" for name in subset_names}
    return [
        Field("format", "Format", TEXT, "Folders come as a .zip.", choices=_FORMATS),
        Field("weights", "Weights", TEXT, "Which of them stand in the column weight.", choices=_WEIGHTS),
        Field("subset", "Tasks", TEXT, "", choices=every),
        Field("stratum", "Kind", TEXT, "", choices={"": "both", **{name: f"came {name}" for name in STRATA}}),
        Field("rounds", "Rounds", TEXT, "Such as 0-3,5. Left empty: all."),
        Field("as_of", "As of", TEXT, "As it was known then, such as 2026-01-31T12:00+01:00. Left empty: now."),
    ]


_FORMATS: dict[str, str] = {
    Format.JSONL: "JSONL: a line per task",
    Format.CSV: "CSV",
    Format.PARQUET: "Parquet",
    Format.IMAGEFOLDER: "image folder: a folder per class",
    Format.LABEL_STUDIO: "Label Studio JSON: can be imported again",
    Format.HUGGINGFACE: "Hugging Face: for datasets.load_dataset",
}
_WEIGHTS: dict[str, str] = {
    Weights.PAPER: "paper: min(1/p, cap), as trained",
    Weights.UNBIASED: "unbiased: the set stands for the pool",
    Weights.MEAN1: "mean1: as trained, with mean 1",
    Weights.SUM_TO_POOL: "sum-to-pool: unbiased, summing to the pool",
}


def _same(names: tuple[str, ...]) -> dict[str, str]:
    return {name: name for name in names}


MISTAKES = (BadOption, PlanError, subsets.BadSubset, ExportError)
"""What is wrong with values, rather than with us."""
