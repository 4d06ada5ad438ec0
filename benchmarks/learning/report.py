"""What came out: a row of Markdown for each measurement as soon as it is known, remarks after each part."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Goal:
    """A bound on one number; `unit` is how it is written."""

    least: float | None = None
    below: float | None = None
    unit: str = "{:.2f}"

    def met(self, value: float) -> bool:
        return (self.least is None or value >= self.least) and (self.below is None or value < self.below)

    def __str__(self) -> str:
        if self.least is not None:
            return "≥ " + self.unit.format(self.least)
        return "< " + self.unit.format(self.below) if self.below is not None else ""


@dataclass(frozen=True)
class Row:
    part: str
    name: str
    ours: str
    peer: str
    ratio: float | None
    goal: str
    verdict: str


@dataclass
class Report:
    rows: list[Row] = field(default_factory=list)
    remarks: list[tuple[str, str]] = field(default_factory=list)
    part: str = ""

    def begin(self, part: str) -> None:
        self.part = part
        print(f"\n### {part}\n\n| what | ours | bare or peer | ratio | goal | verdict |\n|---|---|---|---|---|---|")
        sys.stdout.flush()

    def row(
        self,
        name: str,
        ours: str,
        peer: str = "",
        *,
        ratio: float | None = None,
        goal: Goal | None = None,
        judged: float | None = None,
    ) -> None:
        """One measurement; the goal is for the ratio unless `judged` is given."""
        value = ratio if judged is None else judged
        verdict = "" if goal is None or value is None else "met" if goal.met(value) else "missed"
        row = Row(self.part, name, ours, peer, ratio, "" if goal is None else str(goal), verdict)
        self.rows.append(row)
        shown = "" if ratio is None else f"{ratio:,.2f}"
        print(f"| {row.name} | {row.ours} | {row.peer} | {shown} | {row.goal} | {row.verdict} |", flush=True)

    def remark(self, text: str) -> None:
        self.remarks.append((self.part, text))

    def end(self) -> None:
        remarks = [text for part, text in self.remarks if part == self.part]
        if remarks:
            print("\n" + "\n\n".join(remarks), flush=True)

    def progress(self, text: str) -> None:
        print(f"  {self.part}: {text}", file=sys.stderr, flush=True)

    def save(self, path: Path) -> None:
        remarks = [{"part": part, "text": text} for part, text in self.remarks]
        content = {"rows": [asdict(row) for row in self.rows], "remarks": remarks}
        path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
