"""What a run of the benchmark is told."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.speed.made import PROJECT
from benchmarks.speed.settings import Settings


@dataclass(frozen=True)
class Options:
    settings: Settings
    environment: Path
    cache: Path
    docs: Path
    fresh: bool
    page_only: bool

    @property
    def journal(self) -> Path:
        return self.cache / ("speed-full.jsonl" if self.settings.full else "speed.jsonl")

    @property
    def json(self) -> Path:
        return self.docs / "figures" / "speed.json"


def options(words: Sequence[str] | None = None) -> Options:
    given = vars(parser().parse_args(words))
    given["environment"] = given["environment"] or given["cache"] / "benchmark"
    return Options(settings=Settings(full=given.pop("full")), **given)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.speed",
        description="Times selections of ours beside those of modAL, Baal, scikit-activeml, small-text, cleanlab and "
        "BADGE's reference algorithm: same process, same arrays, one thread, processor times. The peers are installed "
        "into an environment of their own. A run that was stopped goes on where it was.",
    )
    made.add_argument("--full", action="store_true", help="let slow peers make all picks (many minutes)")
    made.add_argument("--fresh", action="store_true", help="measure also what is measured already")
    made.add_argument("--cache", type=Path, default=PROJECT / ".cache", help="where what is finished is kept (.cache)")
    made.add_argument(
        "--environment", type=Path, metavar="FOLDER", help="where the peers are installed (benchmark in the cache)"
    )
    made.add_argument("--docs", type=Path, default=PROJECT / "docs", help="where page and picture go (docs)")
    made.add_argument("--page-only", action="store_true", help="make page and picture again from the JSON")
    return made
