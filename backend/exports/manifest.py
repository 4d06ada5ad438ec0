"""The manifest of an export: how every weight in it came about, what is in it, and how to make it again."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from backend.exports.record import Lines
from backend.exports.wish import Wish
from jobs import estimates
from store import weighted_facts, weighted_set
from store.tables import Project, Subset
from store.weighted_set import Part, WeightedRows

KIND = "iwes weighted training set"
VERSION = 1


_KIND = ("provenance", "class_name", "stratum", "round")


class Tally:
    """What is counted of the rows that go by."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._kinds: Counter[tuple[str, str, str, int | None]] = Counter()
        self._sum = self._squares = 0.0
        self._drawn = self._capped = 0
        self.left_out: dict[int, str] = {}
        """Tasks that are not in the export, as their images cannot be read, each with the reason."""

    @property
    def rows(self) -> int:
        return self._kinds.total()

    def counted(self, lines: Iterable[Lines]) -> Iterator[Lines]:
        for some in lines:
            self.add(some.rows, some.columns["weight"], some.json)
            yield some

    def add(self, rows: WeightedRows, weights: Sequence[float], json: bytes) -> None:
        if not len(rows):
            return
        self._digest.update(json)
        self._kinds.update(zip(*(rows[name] for name in _KIND), strict=True))
        self._sum += sum(weights)
        self._squares += sum([weight * weight for weight in weights])
        chances = zip(rows["model_version"], rows["probability"], rows["weight"], strict=True)
        drawn = [weight * chance for version, chance, weight in chances if version is not None and chance]
        self._drawn += len(drawn)
        self._capped += sum([share < 1.0 - 1e-12 for share in drawn])

    def counts(self) -> dict[str, dict[str, int]]:
        by: dict[str, Counter[str]] = {"provenance": Counter(), "class": Counter(), "stratum": Counter()}
        for (provenance, class_name, stratum, _round), count in self._kinds.items():
            for name, value in (("provenance", provenance), ("class", class_name), ("stratum", stratum)):
                by[name][value] += count
        return {name: dict(sorted(found.items())) for name, found in by.items()}

    def of_round(self, stratum: str, number: int) -> int:
        return sum(count for kind, count in self._kinds.items() if kind[2:] == (stratum, number))

    def weights(self) -> dict[str, float | None]:
        return {
            "sum": self._sum,
            "mean": self._sum / self.rows if self.rows else None,
            "effective_sample_size": self._sum**2 / self._squares if self._squares else 0.0,
            "share_capped": self._capped / self._drawn if self._drawn else None,
        }

    @property
    def digest(self) -> str:
        return f"sha256:{self._digest.hexdigest()}"


def manifest(
    session: Session,
    project: Project,
    wish: Wish,
    part: Part,
    tally: Tally,
    *,
    out: str,
    told: Mapping[str, Any] | None = None,
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Nothing in it depends on when it was written: the same state gives the same bytes. `told` is what the labels say,
    where that was worked out before, and `more` what a format has to add."""
    rounds = _rounds(session, project, part, tally)
    return {
        "kind": KIND,
        "version": VERSION,
        "project": {"url": project.studio_url, "id": project.studio_id, "title": project.title},
        "label_config": _label_config(project),
        "settings": {
            **{
                "mode": str(project.mode),
                "rule": str(project.rule),
                "k": project.k,
                "k0": project.seed_size,
                "cap": project.cap,
            },
            **{"floor": project.floor, "reserve": project.reserve, "sharpness": project.sharpness},
            **{"network": project.network, "rng_seed": project.rng_seed},
        },
        "export": wish.words() | {"weights": str(wish.weights)},
        "rows": tally.rows,
        "counts": tally.counts(),
        "weights": {"mode": str(wish.weights), **tally.weights()},
        "pool": weighted_facts.sizes(session, project),
        "rounds": rounds,
        "model_versions": sorted({found["model_version"] for found in rounds if found["model_version"]}),
        "skipped": sum(found["skipped"] for found in rounds),
        **({"as_of": _as_of(session, project, part)} if part.as_of else {}),
        **({"left_out": {str(task): why for task, why in sorted(tally.left_out.items())}} if tally.left_out else {}),
        **(more or {}),
        **({} if part.as_of else {"estimates": told or told_by_labels(session, project)}),
        "row_digest": tally.digest,
        "command": wish.command(project, out),
    }


def told_by_labels(session: Session, project: Project) -> dict[str, Any]:
    """What all of the project's labels say, as they are now, of what nobody has labelled."""
    return estimates.of_project(session, project).as_dict()


def as_bytes(found: Mapping[str, Any]) -> bytes:
    return json.dumps(found, indent=2).encode() + b"\n"


def _label_config(project: Project) -> dict[str, Any]:
    said = {name: getattr(project, name) for name in ("control", "target", "field", "classes")}
    digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
    return {**said, "digest": f"sha256:{digest}"}


def _rounds(session: Session, project: Project, part: Part, tally: Tally) -> list[dict[str, Any]]:
    """Those that rows may come from: the annotators', and those of the subset that is in the set."""
    subset = weighted_set.training_subset(session, project, part)
    wanted: list[tuple[Subset | None, str]] = []
    if part.subset is None:
        wanted.append((None, weighted_set.UNLABELLED))
    if subset is not None:
        wanted.append((subset, weighted_set.LABELLED))
    skipped = weighted_facts.skipped(session, project, part)
    return [
        {
            "of": "annotators" if whose is None else whose.name,
            **{"round": found.number, "rule": found.rule, "model_version": found.model_version},
            **{"k": found.wanted, "batch": found.batch_size, "pool": found.pool_size, "examined": found.examined},
            **{"cap": found.cap, "floor": found.floor, "reserve": found.reserve, "sharpness": found.sharpness},
            "drawn_at": found.drawn_at.isoformat(),
            "rows": tally.of_round(stratum, found.number),
            "skipped": skipped.get(found.id, 0),
        }
        for whose, stratum in wanted
        if part.stratum in (None, stratum)
        for found in weighted_set.sequence(session, project, whose, part)
        if part.rounds is None or found.number in part.rounds
    ]


def _as_of(session: Session, project: Project, part: Part) -> dict[str, Any]:
    assert part.as_of is not None  # noqa: S101
    found = weighted_facts.doubts(session, project, part.as_of)
    return {"moment": part.as_of.isoformat(), "changed_since": found.changed, "taken_back": found.taken_back}
