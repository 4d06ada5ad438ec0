"""What is wanted of an export: the same five questions on the command line, over HTTP and on the dashboard."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from sqlalchemy.orm import Session

from backend.exports.errors import ExportError
from store import subsets
from store.tables import Project
from store.weighted_set import STRATA, Part


class Format(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    IMAGEFOLDER = "imagefolder"
    LABEL_STUDIO = "label-studio"
    HUGGINGFACE = "huggingface"

    @property
    def suffix(self) -> str:
        """Of the file; a folder has none, and is sent as a .zip."""
        return {"imagefolder": "", "huggingface": "", "label-studio": ".json"}.get(self.value, f".{self.value}")

    @property
    def is_folder(self) -> bool:
        return not self.suffix


class Weights(StrEnum):
    PAPER = "paper"
    """min(1/p, cap), as trained."""
    UNBIASED = "unbiased"
    """1/π, shared among the rounds: the set stands for the pool, see `iwes.PoolWeights`."""
    MEAN1 = "mean1"
    """Those of the paper, scaled to mean 1."""
    SUM_TO_POOL = "sum-to-pool"
    """The unbiased ones, scaled so that those of each stratum sum to its number of tasks."""


Choice = TypeVar("Choice", bound=StrEnum)
_SPAN = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?")
MOST_ROUND = 100_000


@dataclass(frozen=True)
class Wish:
    format: Format = Format.JSONL
    weights: Weights = Weights.PAPER
    rounds: frozenset[int] | None = None
    stratum: str | None = None
    subset: str | None = None
    as_of: datetime | None = None

    @classmethod
    def said(cls, words: Mapping[str, str | None]) -> Wish:
        """From text, by the names of the fields; what is empty or not there is as by default. Raises ExportError."""
        unknown = sorted(set(words) - set(cls.__dataclass_fields__))
        if unknown:
            raise ExportError(f"{unknown[0]} is not known here; there are {', '.join(cls.__dataclass_fields__)}")
        given = {name: text.strip() for name, text in words.items() if text and text.strip()}
        moment = given.get("as_of")
        return cls(
            format=_one_of(Format, given.get("format", Format.JSONL), "format"),
            weights=_one_of(Weights, given.get("weights", Weights.PAPER), "weights"),
            rounds=_rounds(given["rounds"]) if "rounds" in given else None,
            stratum=_stratum(given["stratum"]) if "stratum" in given else None,
            subset=given.get("subset"),
            as_of=None if moment is None else _moment(moment),
        )

    def words(self) -> dict[str, str]:
        """What `said` reads again; without what is as by default, but always with the format."""
        found = {
            "format": str(self.format),
            "weights": "" if self.weights is Weights.PAPER else str(self.weights),
            "rounds": "" if self.rounds is None else _spans(self.rounds),
            "stratum": self.stratum or "",
            "subset": self.subset or "",
            "as_of": "" if self.as_of is None else self.as_of.isoformat(),
        }
        return {name: text for name, text in found.items() if text}

    def command(self, project: Project, out: str) -> str:
        """The command that does the same again."""
        where = ["--url", project.studio_url, "--project", str(project.studio_id)]
        options = [part for name, text in self.words().items() for part in (f"--{name.replace('_', '-')}", text)]
        return shlex.join(["iwes", "export", *where, *options, "--out", out])

    def part(self, session: Session, project: Project) -> Part:
        """Raises BadSubset where there is none of that name."""
        subset = subsets.named(session, project, self.subset) if self.subset else None
        return Part(subset.id if subset else None, self.rounds, self.stratum, self.as_of)

    def file_name(self, project: Project) -> str:
        """Under which it is downloaded."""
        scope = f"-{self.subset}" if self.subset else ""
        return f"project-{project.studio_id}{scope}{self.format.suffix or '.zip'}"


def format_of(out: Path, said: str | None) -> Format:
    """As said, or as the suffix tells. Raises ExportError."""
    if said:
        return _one_of(Format, said, "format")
    by_suffix = {found.suffix: found for found in Format if not found.is_folder}
    found = by_suffix.get(out.suffix.lower())
    if found is None:
        raise ExportError(
            f"--out {out}: give a file that ends in {', '.join(by_suffix)}, or a --format: {', '.join(Format)}"
        )
    return found


def _one_of(kind: type[Choice], text: str, name: str) -> Choice:
    try:
        return kind(text)
    except ValueError:
        raise ExportError(f"{name} is {text[:80]!r}; give one of {', '.join(kind)}") from None


def _rounds(text: str) -> frozenset[int]:
    wanted: set[int] = set()
    for part in text.split(","):
        span = _SPAN.fullmatch(part.strip())
        first, last = (int(span[1]), int(span[2] or span[1])) if span else (1, 0)
        if not first <= last <= MOST_ROUND:
            raise ExportError(f"rounds is {text[:80]!r}; give numbers and spans of them, such as 0-3,5")
        wanted.update(range(first, last + 1))
    return frozenset(wanted)


def _spans(wanted: frozenset[int]) -> str:
    spans: list[list[int]] = []
    for number in sorted(wanted):
        if spans and spans[-1][-1] == number - 1:
            spans[-1] = [spans[-1][0], number]
        else:
            spans.append([number])
    return ",".join("-".join(map(str, span)) for span in spans)


def _stratum(text: str) -> str:
    if text not in STRATA:
        raise ExportError(f"stratum is {text[:80]!r}; give one of {', '.join(STRATA)}")
    return text


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text.replace(" ", "+") if "T" in text else text)  # a URL's + may come as a space
        return found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ExportError(
            f"as_of is {text[:80]!r}; give a time such as 2026-01-31 or 2026-01-31T12:00+01:00; UTC if no zone is given"
        ) from None
